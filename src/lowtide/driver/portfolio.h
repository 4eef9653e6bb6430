// All solvers for one problem: some one after the other, then epochs of lanes. See portfolio.cpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/driver/portfolio_task.h"
#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

// Of the free order's plan over that of the given one.
enum class Lead { none, some, far };

class Portfolio {
 public:
  static constexpr int kWhole = 4;  // of an epoch, in quarters

  // Told each plan that becomes the best, and by which part: one thread at a time.
  using Found = std::function<void(const Plan&, std::string_view part)>;

  Portfolio(const Problem& problem, solve::Context& context, Found found = {});
  Portfolio(const Portfolio&) = delete;
  Portfolio& operator=(const Portfolio&) = delete;

  // The bounds, for a moment.
  void prove_briefly();
  // The constructive parts, one after the other.
  void construct();
  // On a chain: the plan that the dynamic program over it finds.
  void ask_chain();
  // Runs the solver with Trait::tight, if no plan within the budget is known yet.
  void ask_tight();
  // With a free order: starts from what a portfolio found with the given order.
  void take_given(const Portfolio& given);
  // The same, of what that has found since.
  void hear_from(const Portfolio& given);
  // By how much the best plan, in another order, is better than the best in the graph's own.
  Lead lead() const;
  // Epochs, until there is nothing more to do: what can be proven is, or a limit is reached.
  void search();
  // The same one by one, after the first: as much of an epoch as `quarters` say. False if there is
  // nothing more to do.
  void begin_search();
  bool epoch(int quarters = kWhole);

 private:
  using Kept = PortfolioKept;
  using Task = PortfolioTask;

  // Those that take the problem. Engines are asked by themselves.
  std::vector<const solve::Solver*> parts(solve::Trait trait, bool external = false) const;
  const solve::Solver* first(solve::Trait trait, bool external = false) const;  // guests left out
  Task part_task(const solve::Solver* part, std::int64_t work) const;
  Task proof_task(std::int64_t work);
  void add_proof(std::vector<Task>& tasks, std::int64_t work);
  void share_out_what_is_left(std::vector<Task>& lanes) const;
  Task lane_task(std::uint64_t number, int lane, std::int64_t slice) const;
  void choose_heat(Task& task, std::uint64_t number, std::uint64_t place, bool brief) const;
  double excess_of_repeats() const;
  Ticks best_duration() const {
    return context_.has_plan() ? context_.best_cost().duration : Ticks::max();
  }
  void count_won(const Task& task);
  void choose_orders(Task& task, std::uint64_t number, std::uint64_t place) const;
  int lane_count(int quarters) const;
  bool would_repeat(const solve::Solver& part) const;
  void ask_with_link(const solve::Solver* part, std::int64_t work);
  std::uint64_t task_seed(std::uint64_t number) const;
  bool stop();

  bool engine_found_in_time(const solve::Solver& part) const;
  void prove_by_engine();
  // Alone, with at most such a share of what is left.
  std::int64_t work_within(double share, std::int64_t work) const;  // of what is left
  void run_alone(Task task);
  void run_one(const solve::Solver* part, std::int64_t work, double share = 1);
  void run(std::vector<Task>& tasks, int threads);
  void run_task(Task& task, LimitSettings limits, const Bound& known, std::vector<Plan> starts);
  void solve_or_say_why(Task& task, const Problem& problem, solve::Context& inner) const;
  void merge(Task& task);
  void leave_out(const solve::Solver* part);
  void keep(const Task& task);
  bool best_transfers() const { return context_.has_plan() && transfers(context_.best()); }
  void offer(const Plan& plan, const Cost& cost, const solve::Solver& part);
  void raise(const solve::Solver& part, Ticks bound);
  bool unlimited() const { return !clocked_ && !context_.limits().settings().work; }
  bool too_late() const { return context_.limits().over(); }
  double seconds_left() const;
  bool has_any_plan();

  const Problem& problem_;
  solve::Context& context_;
  const Found found_;
  const bool clocked_;
  const int threads_;
  const std::int64_t ops_;
  std::vector<Plan> starts_;        // the best plan so far, then the caller's
  Kept best_elsewhere_;             // the best not derived from what half of the lanes leave out
  Cost given_cost_;                 // where the order is free: of the best in the graph's own
  bool after_given_ = false;        // take_given was called
  Kept swapped_;                    // with a machine: the best that transfers
  std::int64_t longest_proof_ = 0;  // work
  // Of the epochs.
  std::uint64_t number_ = 0;
  std::int64_t slice_ = 0;
  Ticks last_duration_ = Ticks::max(), last_bound_;
  // By how many mean op times a repeated computation of the best plan costs more than is proven.
  double excess_ = 0;
  // The most that a lane which was not hot has won, and one that was: in the last epoch with such a
  // lane, and in this one (negative: there was none). As epochs double, what a lane wins in one of
  // them compares with what another wins in the next.
  std::array<Ticks, 2> won_{}, won_now_{};
  Ticks before_lanes_;    // duration of the best plan; Ticks::max(): there was none
  bool repairs_ = false;  // whether plans over the budget are starts too
  std::vector<const solve::Solver*> unfinished_;
  const solve::Solver* tight_ = nullptr;
  const solve::Solver* search_ = nullptr;
  const solve::Solver* proving_ = nullptr;
  const solve::Solver* blocks_ = nullptr;
  bool engine_ = false;  // still to be asked
  std::mutex mutex_;     // of context_, while tasks run
  int failed_lanes_ = 0;
  // Whoever watches has thrown, and that is no failure of a part.
  std::atomic<bool> watcher_threw_ = false;
};

// Options of `search` in one of many short runs: the runs differ in how hot they begin, and, where
// the order is free, in whether they search the order alone first. `brief`: so few proposals for
// each op that there is no time to cool down. `swaps`: there is a link, with which single moves win
// and lose more.
std::vector<std::pair<std::string, std::string>> search_options(std::uint64_t turn, bool brief,
                                                                bool swaps = false);

}  // namespace lowtide::driver

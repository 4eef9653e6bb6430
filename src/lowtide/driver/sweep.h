// Solves one graph for many budgets, several at a time, and shares results between them. Private to
// the room: curve and fit choose the budgets; a sweep provides start plans, bounds and limits.
//
// Work comes in rounds. All tasks of a round start from what was known before it, and their results
// are merged after it, in their order. So without a time limit the number of threads changes
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lowtide/driver/allowed_graph.h"
#include "lowtide/driver/driver.h"
#include "lowtide/driver/footprint.h"
#include "lowtide/driver/sweep_settings.h"
#include "lowtide/plan/frontier.h"
#include "lowtide/plan/tradeoff.h"
#include "lowtide/transforms/transform_cache.h"

namespace lowtide::driver {

struct SweepTask {
  Bytes budget;
  double weight = 1;        // of the round's limits, relative to the other tasks; > 0
  Ticks enough = Ticks(0);  // a plan at most this long ends the task
  std::string solver = {};  // if not empty, in place of that of the settings
  std::vector<std::pair<std::string, std::string>> options = {};  // of `solver`
  // Plans with exactly these transforms; nullopt: with those that the solver finds, or none.
  std::optional<std::vector<Transform>> transforms = std::nullopt;
  // The known plans with these transforms, in place of those of the sweep; results are added to
  // them.
  Frontier* own = nullptr;
};

class Sweep {
 public:
  // Whether a plan found on the way to a better one should be kept too.
  using Wanted = std::function<bool(const Cost&)>;

  // Starts with the unplanned step. Throws InputError as solve() does for the solver. Where budgets
  // limit something else than live bytes, all known plans are measured.
  Sweep(const solve::SolverTable& solvers, const Graph& graph, const Terms& terms,
        const FootprintTerms& footprint, SweepSettings settings);

  const Frontier& known() const { return known_; }
  Frontier& known() { return known_; }
  // The same plan with what it takes, unless budgets limit live bytes. It must hold.
  Frontier::Entry measured(Frontier::Entry entry);
  // Adds a failure to the note of every point.
  void say_failed(const std::string& part, const std::string& why);
  StopReason reason() const;  // why it must stop now; `finished` if it need not
  // Why it has ended: the reason above, or the limit that the solves of the last round reached,
  // each within its share; `finished` if all of them ended by themselves.
  StopReason stopped_by() const { return reason() != StopReason::finished ? reason() : cut_short_; }
  double seconds() const { return limits_.seconds(); }
  Limits& limits() { return limits_; }  // for work beside the rounds
  int threads() const { return settings_.threads; }
  // Whether there is a time limit. Only then may the number of threads change the result.
  bool by_clock() const { return settings_.limits.seconds.has_value(); }

  const Graph& graph() const { return graph_; }
  Question question(Bytes budget) const;
  // Whether transforms are looked for. Then the known plans include unplanned steps of split
  // graphs.
  bool open() const { return open_; }
  // The substitutions that make the fastest known graph, if any.
  const std::vector<Transform>& faster() const { return faster_; }
  // Whether subsolvers may run alone: the solver is a portfolio, and for this graph there are a
  // subsolver that improves plans and one that proves bounds. Their names; otherwise empty. If
  // transforms are looked for, none proves bounds.
  bool by_parts() const { return !improving_.empty(); }
  const std::string& improving() const { return improving_; }
  const std::string& proving() const { return proving_; }
  // The remaining work on all threads, approximately.
  double work_left() const;

  // The share of the remaining limits for `tasks` tasks, if tasks of these numbers follow: with a
  // time limit the number of threads counts, without one it does not.
  double share(std::size_t tasks, const std::vector<std::size_t>& later) const;
  // Runs the tasks within this share of the remaining limits. Budgets that are solved, or were
  // searched to the end from the same plans, take nothing. Returns whether any task ran.
  bool round(const std::vector<SweepTask>& tasks, double share, const Wanted& wanted = {});

  // The answer for one budget, from all results so far.
  TradeoffPoint point(Bytes budget) const;

 private:
  struct Tried {
    std::vector<std::pair<Bytes, Ticks>> starts;
    std::string note;
    bool to_the_end = false;
  };
  // A budget, a solver, and a list of transforms: 1 + its index in transform_lists_, or 0.
  using TriedKey = std::tuple<Bytes, std::string, std::size_t>;
  // The price of the link at the highest bound of a budget (Outcome::link_price).
  struct LinkPrice {
    Ticks bound;
    double price = 0;
  };
  struct Job;
  struct Allowance {
    double seconds = std::numeric_limits<double>::infinity();
    std::int64_t work = std::numeric_limits<std::int64_t>::max();
  };
  void begin_from_substitutes();
  void begin_from_splits();
  const Frontier& known_of(const SweepTask& task) const { return task.own ? *task.own : known_; }
  TriedKey key(const SweepTask& task);
  std::vector<Job> jobs_for(const std::vector<SweepTask>& tasks, double share);
  void share_seconds(std::vector<Job>& jobs, double seconds) const;
  void run(Job& job, const Wanted& wanted) const;
  void run_live(Job& job, const Question& asked, const Wanted& wanted) const;
  void run_measured(Job& job, const Question& asked) const;
  void run_all(std::vector<Job>& jobs, const Wanted& wanted);
  void take(Job& job);
  std::optional<double> link_price(Bytes budget) const;
  // Verifies a plan for the original graph, with its transforms applied again, once for each plan.
  // Solves have verified plans without transforms for the allowed graph, so these are verified
  // again only if it differs from the original graph. Throws InternalError.
  void verify_on_original(const Frontier::Entry& entry) const;

  const solve::SolverTable& solvers_;
  const Graph& original_graph_;
  AllowedGraph allowed_;
  const Graph& graph_;  // of allowed_, which all solves use
  Terms terms_;
  FootprintTerms footprint_;
  Measure measure_;  // of single plans, as low as they can lie; empty for live bytes
  SweepSettings settings_;
  std::shared_ptr<TransformCache> transform_cache_ = std::make_shared<TransformCache>(graph_);
  Limits limits_;
  Frontier known_;
  mutable std::set<std::shared_ptr<const Plan>> verified_;  // for the original graph
  std::string improving_, proving_;
  bool open_ = false;  // transforms are looked for: bounds of one graph do not hold for others
  std::vector<Transform> faster_;
  Ticks fastest_;                                // sum of all ops, the least of all graphs
  StopReason cut_short_ = StopReason::finished;  // of the last round
  std::map<TriedKey, Tried> tried_;
  std::vector<PortfolioPart> failed_;  // of all solves
  std::map<Bytes, LinkPrice> link_prices_;
  std::vector<std::vector<Transform>> transform_lists_;  // of the tasks so far
  std::uint64_t solves_ = 0;
};

}  // namespace lowtide::driver

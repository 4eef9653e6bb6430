// Solves for many budgets of one graph, several at a time, that learn from one another. Private to
// the room: curve and fit decide which budgets; this hands out starts, bounds and limits.
//
// Work comes in rounds. All tasks of a round start from what was known before it, and what they
// find is taken up after it, in their order: so without a clock the number of threads changes
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
#include "lowtide/driver/sweep_settings.h"
#include "lowtide/plan/frontier.h"
#include "lowtide/plan/tradeoff.h"
#include "lowtide/transforms/transform_cache.h"

namespace lowtide::driver {

struct SweepTask {
  Bytes budget;
  double weight = 1;        // of the round's limits, against the other tasks'; > 0
  Ticks enough = Ticks(0);  // a plan no longer than this ends the task
  std::string solver = {};  // another one than the settings'
  std::vector<std::pair<std::string, std::string>> options = {};  // of that one
  // Plans with these alone; absent: with those that the solver finds, or none.
  std::optional<std::vector<Transform>> transforms = std::nullopt;
  // All plans with these that are known, in place of those that the sweep knows; what is found is
  // added.
  Frontier* own = nullptr;
};

class Sweep {
 public:
  // Says of a plan on the way to a better one whether it should be kept too.
  using Wanted = std::function<bool(const Cost&)>;

  // Knows the plan of the graph's own order from the start. InputError as solve() for the solver.
  Sweep(const solve::SolverTable& solvers, const Graph& graph, const Terms& terms,
        SweepSettings settings);

  const Frontier& known() const { return known_; }
  Frontier& known() { return known_; }
  // Of all rounds: said with each point.
  void say_failed(const std::string& part, const std::string& why);
  StopReason reason() const;  // that it must stop now; `finished` if it need not
  // What has ended it: the reason above, or the limit that the solves of the last round ran into,
  // each within its part of it; `finished` if they all came to an end of their own.
  StopReason stopped_by() const { return reason() != StopReason::finished ? reason() : cut_short_; }
  double seconds() const { return limits_.seconds(); }
  Limits& limits() { return limits_; }  // for what is done beside the rounds
  int threads() const { return settings_.threads; }
  // Then what threads there are may change what is found; without a clock it may not.
  bool by_clock() const { return settings_.limits.seconds.has_value(); }

  const Graph& graph() const { return graph_; }
  Question question(Bytes budget) const;
  // Whether transforms are looked for. Then the known plans begin with what splits give for
  // nothing.
  bool open() const { return open_; }
  // The substitutions that make the fastest graph known, if any.
  const std::vector<Transform>& faster() const { return faster_; }
  // Whether the parts of the solver may be run alone: it is a portfolio, and there are one that
  // improves plans and one that proves for this graph. Their names; empty otherwise. Where
  // transforms are looked for none proves.
  bool by_parts() const { return !improving_.empty(); }
  const std::string& improving() const { return improving_; }
  const std::string& proving() const { return proving_; }
  // About how much work is left, on all threads.
  double work_left() const;

  // The part of what is left that `tasks` tasks should get if others of so many follow one another
  // after them: under a clock threads count, without one they do not.
  double share(std::size_t tasks, const std::vector<std::size_t>& later) const;
  // Runs the tasks within that share of what is left. A budget at which there is nothing to do
  // (settled, or searched to the end from the same plans) takes nothing. Says whether anything ran.
  bool round(const std::vector<SweepTask>& tasks, double share, const Wanted& wanted = {});

  // The answer for one budget, from everything known.
  TradeoffPoint point(Bytes budget) const;

 private:
  struct Tried {
    std::vector<std::pair<Bytes, Ticks>> starts;
    std::string note;
    bool to_the_end = false;
  };
  // A budget, a solver, and which list of transforms: 1 + its place in transform_lists_, or 0.
  using TriedKey = std::tuple<Bytes, std::string, std::size_t>;
  // What the highest bound of a budget says of the link (Outcome::link_price).
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
  void run_all(std::vector<Job>& jobs, const Wanted& wanted);
  void take(Job& job);
  std::optional<double> link_price(Bytes budget) const;
  // Before a plan leaves: it is verified for the original graph, with its transforms applied anew,
  // once for each plan. Solves have verified plans without transforms for the allowed graph, so
  // that these are verified again only if it is another one. InternalError.
  void verify_on_original(const Frontier::Entry& entry) const;

  const solve::SolverTable& solvers_;
  const Graph& original_graph_;
  AllowedGraph allowed_;
  const Graph& graph_;  // of allowed_: all solves are on this one
  Terms terms_;
  SweepSettings settings_;
  std::shared_ptr<TransformCache> transform_cache_ = std::make_shared<TransformCache>(graph_);
  Limits limits_;
  Frontier known_;
  mutable std::set<std::shared_ptr<const Plan>> verified_;  // for the original graph
  std::string improving_, proving_;
  bool open_ = false;  // transforms are looked for: proofs about one graph are none about others
  std::vector<Transform> faster_;
  Ticks fastest_;                                // of all graphs, all ops once
  StopReason cut_short_ = StopReason::finished;  // some solve of the last round
  std::map<TriedKey, Tried> tried_;
  std::vector<PortfolioPart> failed_;  // of all solves
  std::map<Bytes, LinkPrice> link_prices_;
  std::vector<std::vector<Transform>> transform_lists_;  // of the tasks so far
  std::uint64_t solves_ = 0;
};

}  // namespace lowtide::driver

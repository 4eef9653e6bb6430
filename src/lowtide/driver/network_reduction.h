// Reduces a graph with network ops to one whose ops all run on the compute lane. So no solver needs
// to know the network lane.
//
// The plans of both graphs are the same, with the same peaks. On the original graph no plan takes
// longer, since network ops run beside the computing. So every plan is priced anew. The answer is
// the best of three plans, each with its network ops moved (overlap.h): the best that the solver
// found on its way, its last, and that of the given order if it keeps the budget.
//
// Bounds on durations are translated. A plan takes at least as long as its computing, and that is
// what it takes on the reduced graph less the time of its network ops. If none of these may be
// recomputed, their time is the same in every plan. With transfers that is no bound: where a
// network op waits for a copy on the reduced graph, later ops wait too, and on the original they
// need not.
#pragma once

#include <optional>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/driver/reduction.h"

namespace lowtide::driver {

class NetworkReduction final : public Reduction {
 public:
  // limits: of the solve, which begins now. Moving network ops takes what the solver leaves of
  // them.
  NetworkReduction(const Problem& original, const LimitSettings& limits);

  // The time limit of the reduced problem is longer by what the given order hides.
  const Problem& problem() const override { return problem_; }
  // The watcher also prices the plans for `bring_back`, so there is one even if `watcher` is empty.
  solve::Watcher translate(solve::Watcher watcher) override;
  void bring_back(Answer& answer) const override;

 private:
  // A lower bound on durations for the original graph, from one for the reduced graph.
  Ticks original_bound(Ticks reduced) const;
  bool within(const Cost& cost) const;
  bool better(const Cost& a, const Cost& b) const;
  // Whether the plan becomes the best.
  bool take(const Plan& plan, const solve::Progress& progress);
  void improve(Outcome& outcome) const;
  void settle(Outcome& outcome) const;

  const Problem& original_;
  const Limits limits_;
  const Ticks least_;     // of every plan of the original graph
  const bool runs_once_;  // no network op may be recomputed
  Graph graph_;
  Problem problem_;
  std::optional<Plan> best_;
  Cost best_cost_;  // on the original graph
  std::optional<Cost> last_reduced_cost_;
  std::vector<Incumbent> history_;
};

}  // namespace lowtide::driver

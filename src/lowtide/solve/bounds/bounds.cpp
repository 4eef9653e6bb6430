// Problem: prove how far a plan can be from optimal, and whether the budget is infeasible.
//
// Idea: relaxations, from the cheapest to the most expensive. First the cuts at the critical cut
// points, each continued only while it may exceed the best bound so far. With the given order, then
// the cover of gaps. Then several cut points at once, and branching at the cut points with the best
// cuts, in growing shares of the work, with more cut points; with the given order also branching at
// several. The kept tensors of a cut, with all others recomputed just in time, are offered as a
// plan.
//
// With a machine only the cuts and their branching are used, since they model host copies. The
// others would charge a recomputation for every tensor that is not live.
//
// Source: see cut_search.cpp, cut_branch.cpp, gap_cover.cpp and the stage files.
//
// Invariant: every bound is computed in integers and holds for every plan of the problem.
//
// Loses: if several distant cut points each force a recomputation that the others do not see, and
// if the memory of the recomputation itself is scarce.
#include "lowtide/solve/bounds/bounds.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lowtide/solve/bounds/home/home_bound.h"
#include "lowtide/solve/bounds/prover.h"

namespace lowtide::solve::bounds {

namespace {

const std::vector<OptionSpec>& option_table() {
  static const std::vector<OptionSpec> table = {
      switch_option(
          "gaps", "retention gaps: which must be evicted, as a covering problem; given order only"),
      switch_option("cuts", "minimum cut over the tensors live at one cut point"),
      switch_option(
          "branching",
          "branch and bound on the tensors live at one or several of the best cut points"),
      switch_option("windows", "minimum cuts over several cut points at once"),
      switch_option(
          "stages",
          "branch and bound on the ops recomputed for several cut points; given order only"),
      {.name = "nodes",
       .usage = "most nodes of a branch and bound before its cut point is given up",
       .default_number = 20000,
       .low = 1,
       .high = 1e6,
       .whole = true},
  };
  return table;
}

void raise_by_home(const Problem& problem, Context& context) {
  if (!problem.graph.has_tensors_on_host()) return;
  const HomeBound home = home_bound(problem);
  context.raise_bound(home.duration);
  if (home.duration > problem.graph.total_time())
    context.tell_link_price(static_cast<double>(home.copies.count()) /
                            static_cast<double>(home.duration.count()));
}

class Bounds final : public Solver {
 public:
  std::string_view name() const override { return "bounds"; }
  std::string_view summary() const override {
    return "proves lower bounds on the duration and the peak: minimum cuts, covers of retention "
           "gaps, branch and bound";
  }
  Traits traits() const override { return {Trait::proving, Trait::transfers}; }
  std::span<const OptionSpec> options() const override { return option_table(); }
  Support supports(const Problem& problem) const override { return least_time_only(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    for (const Plan& start : context.starts()) context.offer(start);
    context.offer_events(own_events(problem.graph));
    raise_by_home(problem, context);
    context.limits().spend(static_cast<std::int64_t>(problem.graph.op_count()));
    const Options& options = context.options();
    const bool given = problem.order == Order::given && !problem.machine;
    const bool windows = !problem.machine && options.on("windows");
    const ProverSettings settings{.gaps = given && options.on("gaps"),
                                  .cuts = options.on("cuts"),
                                  .branching = options.on("cuts") && options.on("branching"),
                                  .windows = windows,
                                  .window_branching = windows && options.on("branching"),
                                  .stages = given && options.on("stages"),
                                  .nodes = static_cast<std::int64_t>(options.number("nodes"))};
    if (!context.done()) Prover(problem, context, settings).run();
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_bounds() { return std::make_unique<Bounds>(); }

}  // namespace lowtide::solve::bounds

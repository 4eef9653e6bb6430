// Problem: how far can a plan be from the best one, and is there one at all?
//
// Idea: relaxations, from the cheapest to the dearest. First the cut at the critical cut points,
// each pursued only while it may beat the best bound so far; then, with the order given, the cover
// of gaps; then several cut points at once, branching at the cut points with the best cuts, in
// growing shares of the work, more cut points, and, with the order given, branching at several.
// What a cut keeps, with the rest made again just in time, is offered as a plan.
//
// With a machine the cuts and the branching alone, which know what is on the host; the rest charges
// for every tensor that is away a computation that it does not need.
//
// Source: cut_search.cpp, cut_branch.cpp, gap_cover.cpp and the stage files have theirs.
//
// Invariant: every claim rests on integers alone and holds for every plan of the problem.
//
// Loses: where several cut points far apart each force a recomputation that the others do not see,
// and where the memory of the recomputation itself is what is scarce.
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

// The check of `lowtide verify`: whether a plan file keeps every rule on a graph, and whether its
// figures are right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide {

struct PlanVerdict {
  enum class Kind : std::uint8_t {
    holds,          // everything in the file is true; also of a file that says there is no plan
    another_graph,  // it is a plan for another graph
    broken,         // a step, the budget, the order or a claim does not hold
  };
  Kind kind = Kind::holds;
  std::string reason;               // a sentence, if it does not hold
  std::optional<std::size_t> step;  // the step at fault, if one is; the number of steps: the end
  std::optional<Cost> cost;         // what the steps cost, up to the one at fault
};

// Adds to the file of a plan that transfers what it takes over the links that its machine was
// derated from, if it was.
void claim_full_link(PlanFile& file, const Graph& graph, const std::optional<Machine>& full_link);

// Steps are judged by `verify` with the file's own budget, order, machine and techniques. Then:
// duration, peak and the duration over the full link are those claimed; no bound is beyond the
// duration; the bound of an optimal plan is its duration; status and the presence of steps agree;
// tensors and workspaces that live at the same step are apart by the offsets, within the claimed
// arena; and what the footprint names is claimed, within the budget.
PlanVerdict check_plan(const Graph& graph, const PlanFile& file);

// A plan's graph as its transforms make it, and the file of the same plan for it without any:
// budget, order and claims stay, but for a bound on more than that graph. Throws as
// apply_transforms does.
struct AppliedPlan {
  Graph graph;
  PlanFile file;
};
AppliedPlan apply_plan(const Graph& graph, const PlanFile& file);

}  // namespace lowtide

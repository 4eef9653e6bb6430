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
    holds,          // everything in the file is true; also for a file without a plan
    another_graph,  // the file is for another graph
    broken,         // a step, the budget, the order or a claim is wrong
  };
  Kind kind = Kind::holds;
  std::string reason;               // a sentence, if it does not hold
  std::optional<std::size_t> step;  // the one at fault, if any; the number of steps: the end
  std::optional<Cost> cost;         // of the steps before the fault
};

// Adds to the file of a plan with transfers its duration over the full link, if the machine was
// derated.
void claim_full_link(PlanFile& file, const Graph& graph, const std::optional<Machine>& full_link);

// `verify` checks the steps with the file's own budget, order, machine and techniques. Then
// duration, peak and the duration over the full link must equal the claims; the bound must not
// exceed the duration; an optimal plan's bound must be its duration; status and the presence of
// steps must agree. Tensors and workspaces that live at the same step must be apart by the
// offsets, within the claimed arena; and what the footprint names must be claimed, within the
// budget.
PlanVerdict check_plan(const Graph& graph, const PlanFile& file);

// The transformed graph of a plan, and the file of the same plan for that graph, without
// transforms: budget, order and claims stay, except for a bound over more than that graph. Throws
// as apply_transforms does.
struct AppliedPlan {
  Graph graph;
  PlanFile file;
};
AppliedPlan apply_plan(const Graph& graph, const PlanFile& file);

}  // namespace lowtide

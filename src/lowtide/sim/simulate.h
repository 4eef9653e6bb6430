// The cost of a plan. No other code computes it; docs/reference/cost.md has the rules in words.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/plan.h"

namespace lowtide {

// A rule that the plan breaks: at `step`, or at the end if `step` is the number of steps.
struct Violation {
  std::size_t step = 0;
  std::string reason;  // names the step, op and tensors
};

struct Timeline {
  Cost cost;                // up to the violation, if there is one
  Bytes start;              // bytes in use before the first step
  std::vector<Bytes> live;  // bytes in use during each step, resident bytes and workspace included
  // When each step begins and ends on its lane. A free begins when that lane comes to it and ends
  // when it may take effect.
  std::vector<Ticks> begin, end;
  std::optional<Violation> violation;

  // The first step with the most bytes in use; the number of steps if the start has the most.
  std::size_t peak_step() const;
};

// Runs the steps from the start, linear in their links. Never throws for a plan that is wrong, also
// for indices out of range: it says so in `violation` and stops there. A plan that transfers must
// have its machine. Sums beyond 2^63 are violations too. A plan with transforms runs on the graph
// that they make, whose indices are those in messages; transforms that are refused are a violation
// at step 0.
Timeline simulate(const Graph& graph, const Plan& plan);

// How long the same steps, which break no rule, take over other links; none if that does not fit
// into 63 bits.
std::optional<Ticks> duration_over(const Graph& graph, const Plan& plan, const Machine& links);

// The tensors in use during one step (inputs, outputs and everything else live), by index.
// `step` may be the number of steps: then those live at the end. Not of plans with transforms: ask
// about the graph that they make.
std::vector<TensorId> live_tensors(const Graph& graph, const Plan& plan, std::size_t step);

// The graph computed once in its given order, nothing in place, everything freed as early as it
// may be; its peak. Tensors whose home is the host count as live throughout: on a graph with such
// tensors the plan is not one that runs.
Plan own_plan(const Graph& graph);
Bytes own_peak(const Graph& graph);

}  // namespace lowtide

// The cost of a plan. No other code computes it; docs/reference/cost.md has the rules.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/plan.h"

namespace lowtide {

// A rule that the plan breaks, at `step`, or at the end if `step` is the number of steps.
struct Violation {
  std::size_t step = 0;
  std::string reason;  // names the step, op and tensors
};

struct Timeline {
  Cost cost;                // up to the violation, if there is one
  Bytes start;              // bytes in use before the first step
  std::vector<Bytes> live;  // bytes in use during each step, resident bytes and workspace included
  // When each step begins and ends on its lane. A free begins when the compute lane reaches it, and
  // ends when it takes effect.
  std::vector<Ticks> begin, end;
  std::vector<Ticks> clock;  // when the compute lane goes on, after each step
  std::optional<Violation> violation;

  // The first step at the peak; the number of steps if the peak is before the first step.
  std::size_t peak_step() const;
};

// Runs the steps from the start; linear in their links. Never throws for a wrong plan, not even for
// indices out of range: `violation` says what is wrong, and the simulation stops there. A plan with
// transfers must have its machine. Sums of 2^63 or more are violations too. A plan with transforms
// runs on its transformed graph, and messages use the indices of that graph; a refused transform is
// a violation at step 0.
Timeline simulate(const Graph& graph, const Plan& plan);

// The duration of the same legal steps over other links; nullopt if it exceeds 63 bits.
std::optional<Ticks> duration_over(const Graph& graph, const Plan& plan, const Machine& links);

// The tensors in use during one step (inputs, outputs and everything else that is live), by index.
// If `step` is the number of steps: those that are live at the end. Not for plans with transforms:
// use their transformed graph.
std::vector<TensorId> live_tensors(const Graph& graph, const Plan& plan, std::size_t step);

// The unplanned step: each op once in the given order, nothing in place, everything freed as early
// as possible; and its peak. Tensors at home on the host count as live throughout; on a graph with
// such tensors the plan is not legal.
Plan own_plan(const Graph& graph);
Bytes own_peak(const Graph& graph);
// The base duration, to which overheads are relative: that of the unplanned step. The sum of the
// times of all ops, less what network ops take beside the computing.
Ticks own_duration(const Graph& graph);

// Whether the step runs on the compute lane; a free does.
bool on_compute_lane(const Graph& graph, const Step& step);

}  // namespace lowtide

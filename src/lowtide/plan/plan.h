// A plan: what to do, step by step. Complete in itself, every free is written down. What its steps
// mean, need and take is said in docs/reference/cost.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/ids.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"

namespace lowtide {

enum class StepKind : std::uint8_t { compute, free, offload, prefetch };
std::string_view to_string(StepKind kind);

// `index` is an op's for compute, a tensor's for the others.
struct Step {
  StepKind kind;
  std::int32_t index;

  static Step compute(OpId op) {
    return {StepKind::compute, static_cast<std::int32_t>(op.index())};
  }
  static Step free(TensorId t) { return {StepKind::free, static_cast<std::int32_t>(t.index())}; }
  static Step offload(TensorId t) {
    return {StepKind::offload, static_cast<std::int32_t>(t.index())};
  }
  static Step prefetch(TensorId t) {
    return {StepKind::prefetch, static_cast<std::int32_t>(t.index())};
  }
  bool is_compute() const { return kind == StepKind::compute; }
  OpId op() const { return OpId(static_cast<std::size_t>(index)); }
  TensorId tensor() const { return TensorId(static_cast<std::size_t>(index)); }
  bool operator==(const Step&) const = default;
};

struct Plan {
  std::vector<Step> steps;
  std::optional<Machine> machine;  // there when a step transfers
};

// The plan that computes the ops in this order and frees every tensor as early as it may: each use
// is served by the latest computation of its tensor, which is freed after the last use it serves.
// Linear in the links of the sequence. `sequence` must be one that can be run: every op's inputs
// computed before it.
Plan plan_from_sequence(const Graph& graph, std::span<const OpId> sequence);

// Whether a step moves a tensor to the host or back.
bool transfers(const Plan& plan);

// The ops that the plan computes, in its order, whatever else it does.
std::vector<OpId> computations(const Plan& plan);

// The same of a plan that does not transfer: all that there is to it, but for its frees, since
// plan_from_sequence makes as good a plan of it. A plan that transfers would lose its transfers on
// the way: InternalError.
std::vector<OpId> sequence_of(const Plan& plan);

}  // namespace lowtide

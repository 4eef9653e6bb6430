// A plan: a complete list of steps, frees included. docs/reference/cost.md defines their effect,
// their conditions and their cost.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/ids.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"
#include "lowtide/transforms/transform.h"

namespace lowtide {

enum class StepKind : std::uint8_t { compute, compute_in_place, free, offload, prefetch };
inline constexpr std::array kStepKinds = {StepKind::compute, StepKind::compute_in_place,
                                          StepKind::free, StepKind::offload, StepKind::prefetch};
std::string_view to_string(StepKind kind);

// `index` is that of an op for computations, that of a tensor for the other kinds. The plan lists
// the tensors that a step in place overwrites: see Plan::overwritten.
struct Step {
  StepKind kind;
  std::int32_t index;
  std::uint32_t first = 0, count = 0;

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
  bool is_compute() const {
    return kind == StepKind::compute || kind == StepKind::compute_in_place;
  }
  bool is_transfer() const { return kind == StepKind::offload || kind == StepKind::prefetch; }
  OpId op() const { return OpId(static_cast<std::size_t>(index)); }
  TensorId tensor() const { return TensorId(static_cast<std::size_t>(index)); }
  bool operator==(const Step&) const = default;
};

// The steps of a plan with transforms are those of the transformed graph, in file indices; see
// lowtide/transforms/transformed_graph.h.
struct Plan {
  std::vector<Transform> transforms;
  std::vector<Step> steps;
  std::optional<Machine> machine;     // present if a step transfers
  std::vector<TensorId> in_place_of;  // the overwritten tensors of all steps in place

  // Appends a step that computes the op, in place of those tensors if there are any.
  void add_compute(OpId op, std::span<const TensorId> overwritten);
  // The tensors that a step of this plan overwrites; empty unless it is in place.
  std::span<const TensorId> overwritten(const Step& step) const {
    return std::span(in_place_of).subspan(step.first, step.count);
  }
};

// Whether a plan made from a sequence computes in place whenever possible.
enum class InPlace : std::uint8_t { never, where_possible };

// The plan that computes the ops in this order and frees every tensor as early as possible: the
// latest computation of a tensor serves each use, and the tensor is freed after the last use that
// it serves. Linear in the links of the sequence. In `sequence` every op's inputs must be computed
// before it. An op overwrites paired inputs that are not needed after it. If an output could
// overwrite several, the first pair of the graph counts; the other inputs are freed right after the
// op anyway.
Plan plan_from_sequence(const Graph& graph, std::span<const OpId> sequence,
                        InPlace in_place = InPlace::where_possible);

// Whether a step moves a tensor to the host or back.
bool transfers(const Plan& plan);

// The ops that the plan computes, in order, whatever else it does.
std::vector<OpId> computations(const Plan& plan);

// The same for a plan without transfers, from which plan_from_sequence makes a plan at least as
// good. A plan with transfers would lose them: throws InternalError.
std::vector<OpId> sequence_of(const Plan& plan);

}  // namespace lowtide

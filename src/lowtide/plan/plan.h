// A plan: what to do, step by step. Complete in itself, every free is written down. What its steps
// mean, need and take is said in docs/reference/cost.md.
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

// `index` is an op's where something is computed, a tensor's for the others. Which tensors a step
// in place overwrites stands in its plan: see Plan::overwritten.
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
  std::optional<Machine> machine;     // there when a step transfers
  std::vector<TensorId> in_place_of;  // of all steps in place: what they overwrite

  // Appends a step that computes the op, in place of those tensors if there are any.
  void add_compute(OpId op, std::span<const TensorId> overwritten);
  // What a step of this plan overwrites; nothing but for one in place.
  std::span<const TensorId> overwritten(const Step& step) const {
    return std::span(in_place_of).subspan(step.first, step.count);
  }
};

// Whether a plan made of a sequence computes in place where it can.
enum class InPlace : std::uint8_t { never, where_possible };

// The plan that computes the ops in this order and frees every tensor as early as it may: each use
// is served by the latest computation of its tensor, which is freed after the last use it serves.
// Linear in the links of the sequence. `sequence` must be one that can be run: every op's inputs
// computed before it. An op overwrites the inputs that it may and that are not needed after it; for
// an output that could take the place of several, the first pair of the graph counts, since the
// others are freed right after the op all the same.
Plan plan_from_sequence(const Graph& graph, std::span<const OpId> sequence,
                        InPlace in_place = InPlace::where_possible);

// Whether a step moves a tensor to the host or back.
bool transfers(const Plan& plan);

// The ops that the plan computes, in its order, whatever else it does.
std::vector<OpId> computations(const Plan& plan);

// The same of a plan that does not transfer: all that there is to it, but for its frees, since
// plan_from_sequence makes as good a plan of it. A plan that transfers would lose its transfers on
// the way: InternalError.
std::vector<OpId> sequence_of(const Plan& plan);

}  // namespace lowtide

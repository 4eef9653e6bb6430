// Sequences with transfers: a plan without its frees and offloads, which are derived.
//
//   compute o  runs the op
//   fetch t    brings the tensor back from the host
//   hold t     has no effect, but the tensor is not freed before it
//
// A tensor that an event makes (an output, or a fetched tensor) is live until the last event that
// reads or holds it before the next event that makes it. So `hold` delays a free: an early free
// would stall the compute lane until the copy to the host has ended (docs/reference/cost.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/ids.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"
#include "lowtide/plan/plan.h"

namespace lowtide {

struct Event {
  enum class Kind : std::uint8_t { compute, fetch, hold };
  Kind kind;
  std::int32_t index;  // of an op for computations, of a tensor for the other kinds

  static Event compute(OpId op) { return {Kind::compute, static_cast<std::int32_t>(op.index())}; }
  static Event fetch(TensorId t) { return {Kind::fetch, static_cast<std::int32_t>(t.index())}; }
  static Event hold(TensorId t) { return {Kind::hold, static_cast<std::int32_t>(t.index())}; }
  bool is_compute() const { return kind == Kind::compute; }
  OpId op() const { return OpId(static_cast<std::size_t>(index)); }
  TensorId tensor() const { return TensorId(static_cast<std::size_t>(index)); }
  bool operator==(const Event&) const = default;
};

// The ops computed in this order, without transfers.
std::vector<Event> events_from(std::span<const OpId> sequence);
// The ops in the given order. Tensors at home on the host are fetched right before their first
// reader; graph outputs among them without a reader at the end.
std::vector<Event> own_events(const Graph& graph);
// The inverse: the computed ops.
std::vector<OpId> computations(std::span<const Event> events);
bool transfers(std::span<const Event> events);

// The plan of these events. Every tensor is freed after the last event that reads or holds it, and
// ops run in place as in plan_from_sequence. A fetched tensor is offloaded once: right after its
// first computation, or at the start if no op makes it; not if its home is the host. A mutation
// invalidates the host copy: a tensor that is fetched after that, or whose home is the host, is
// offloaded again right after the mutating op. If several tensors are offloaded after one op, its
// outputs come first, in its order, then the mutated ones; at the start they come by index.
//
// The events must be legal: a tensor that an op reads, or that is held, was made before (inputs by
// the start, unless their home is the host), and no tensor that `stays` is fetched while it is
// live. The plan gets `machine` if it transfers. Linear in the links.
Plan plan_from_events(const Graph& graph, std::span<const Event> events,
                      const std::optional<Machine>& machine,
                      InPlace in_place = InPlace::where_possible);

// The events of a legal plan, without unneeded fetches. plan_from_events makes a plan from them
// with no larger peak. It takes no longer if the original plan offloads at the same places; later
// or repeated offloads are lost.
std::vector<Event> events_of(const Graph& graph, const Plan& plan);

}  // namespace lowtide

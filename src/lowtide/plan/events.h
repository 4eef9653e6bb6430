// Sequences with transfers: what a plan is without its frees and its offloads, which follow.
//
//   compute o  runs the op
//   fetch t    brings the tensor back from the host
//   hold t     does nothing: but the tensor is not freed before here
//
// The tensor that an event makes (an output, or what is fetched) stays until the last event that
// reads or holds it before the next that makes it. So `hold` is what delays a free: with a copy out
// under way, an early free would hold up the compute lane (docs/reference/cost.md).
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
  std::int32_t index;  // an op's where something is computed, a tensor's for the others

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
// The ops in the graph's own order; what is at home on the host is fetched right before its first
// reader, and an output of the graph at the end if none reads it.
std::vector<Event> own_events(const Graph& graph);
// The other way round: the ops alone.
std::vector<OpId> computations(std::span<const Event> events);
bool transfers(std::span<const Event> events);

// The plan of these events. Every tensor is freed behind the last event that reads or holds it, and
// an op overwrites what it may as in plan_from_sequence. A tensor that is fetched is offloaded
// once: right behind its first computation, or at the start if no op makes it; not if its home is
// the host. What an op changes in place voids its copy: a tensor that is fetched after that, or
// whose home is the host, is offloaded right behind that op. Where several are offloaded behind one
// op its outputs come first, in its order, then what it mutates; at the start they come by index.
//
// The events must be ones that can be run: what an op reads, and what is held, has been made
// before, where inputs are made by the start unless their home is the host; nothing that `stays` is
// fetched while it is live. `machine` is the plan's if it transfers. Linear in the links.
Plan plan_from_events(const Graph& graph, std::span<const Event> events,
                      const std::optional<Machine>& machine,
                      InPlace in_place = InPlace::where_possible);

// The events of a plan that can be run. Without the fetches that nothing needs, plan_from_events
// makes a plan of them that needs no more memory, and that takes no longer if the plan offloads
// where plan_from_events would; later or repeated offloads are lost.
std::vector<Event> events_of(const Graph& graph, const Plan& plan);

}  // namespace lowtide

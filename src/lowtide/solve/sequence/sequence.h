// Sequences of computations, which most solvers use: a plan without its frees.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve {

// Each op of the sequence at its first computation, in that order.
std::vector<OpId> first_computations(const Graph& graph, std::span<const OpId> sequence);

// Whether the first computations follow the given order. Linear in the sequence.
bool follows_order(const Graph& graph, std::span<const OpId> sequence);

// For each op, until when it may be recomputed: until the op at this position of `order` has run;
// order.size() means always. Limited only for readers of a tensor that some op mutates and for
// producers of a mutated tensor that the graph keeps. Ignores Graph::recomputable. Linear in the
// links.
std::vector<std::size_t> rerun_deadlines(const Graph& graph, std::span<const OpId> order);

// The sequence without computations that nothing reads before they are repeated, and, transitively,
// without those that only these needed. First computations stay if the problem's order or an
// `after` of the graph requires it; otherwise the recomputation becomes the first computation. No
// step needs more memory than before. Linear in the links.
// For events also without unneeded fetches, and without holds of tensors that have no copy.
std::vector<Event> without_unread(const Problem& problem, std::span<const Event> events);
std::vector<OpId> without_unread(const Problem& problem, std::span<const OpId> sequence);

}  // namespace lowtide::solve

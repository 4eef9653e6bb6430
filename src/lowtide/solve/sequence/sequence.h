// Sequences of computations, which most solvers work on: what a plan is without its frees.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve {

// Each op of the sequence where it is computed first, in that order.
std::vector<OpId> first_computations(const Graph& graph, std::span<const OpId> sequence);

// Whether the first computations come in the graph's own order. Linear in the sequence.
bool follows_order(const Graph& graph, std::span<const OpId> sequence);

// For each op, how long it may be computed again: until the op at this position of `order` has run.
// order.size() means always. Narrower only for readers of a tensor that some op mutates and for
// producers of a mutated tensor that the graph keeps. Says nothing of Graph::recomputable.
// Linear in the links.
std::vector<std::size_t> rerun_deadlines(const Graph& graph, std::span<const OpId> order);

// The sequence without the computations that nothing reads before they are repeated, and, one after
// the other, those that only these needed. First computations stay where the problem's order or an
// `after` of the graph holds them; elsewhere the repetition becomes the first. Needs no more memory
// at any step. Linear in the links.
// Of events also without the fetches that nothing needs, and without the holds of tensors of which
// no copy is made.
std::vector<Event> without_unread(const Problem& problem, std::span<const Event> events);
std::vector<OpId> without_unread(const Problem& problem, std::span<const OpId> sequence);

}  // namespace lowtide::solve

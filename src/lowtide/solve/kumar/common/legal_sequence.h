// From a schedule to a sequence that the problem allows.
#pragma once

#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::kumar {

// The schedule computes every op's inputs before it, and otherwise knows nothing of the problem.
// The sequence keeps its computations where it may. In front of a first computation come those that
// the problem wants before it: with the order given all that precede it there, else what `after`
// and `mutates` ask for. A repetition is left out where the op may not run again (any more): its
// readers then read what is there. Ops that the schedule lacks come last. Linear in the links.
std::vector<OpId> legal_sequence(const Problem& problem, std::span<const OpId> schedule);

}  // namespace lowtide::solve::kumar

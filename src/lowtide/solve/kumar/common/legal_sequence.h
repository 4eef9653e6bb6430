// Makes a legal sequence of the problem from a schedule.
#pragma once

#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::kumar {

// In the schedule, every op's inputs are computed before it; the schedule ignores all other rules
// of the problem. The sequence keeps the schedule's computations where the rules allow. Before a
// first computation it inserts the ops that must precede it: with the given order all earlier ops,
// else those that `after` and `mutates` require. A recomputation is omitted where the op may not
// run again, or no longer; its readers then read the tensor that exists. Ops missing from the
// schedule come last. Linear in the links.
std::vector<OpId> legal_sequence(const Problem& problem, std::span<const OpId> schedule);

}  // namespace lowtide::solve::kumar

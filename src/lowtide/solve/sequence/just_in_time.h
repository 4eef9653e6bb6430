// The plan that keeps a given set of tensors across one op, and recomputes all others when needed.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve {

// The given order up to and with `op`; then without the tensors `dropped`, each of which is
// recomputed right before its first use and stays live from then on. nullopt if that would
// recompute an op that is not recomputable. Linear in the links.
std::optional<std::vector<OpId>> sequence_without(const Problem& problem, OpId op,
                                                  std::span<const TensorId> dropped);

}  // namespace lowtide::solve

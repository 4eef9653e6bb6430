// The plan that keeps a given set of tensors across one op, and recomputes all others when needed.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve {

// The given order up to and with `op`; then without `dropped`, each of which is made again right
// before something needs it and stays from then on. None if that would run an op again that may
// not. Linear in the links.
std::optional<std::vector<OpId>> sequence_without(const Problem& problem, OpId op,
                                                  std::span<const TensorId> dropped);

}  // namespace lowtide::solve

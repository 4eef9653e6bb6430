// The table of dimensions: for each kind of op, which dimensions of its operands and results go
// together (the D-Graph of MAGIS, ASPLOS 2024, section 4.1).
#pragma once

#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/letter.h"

namespace lowtide::dimensions {

// Of an op with operands and arguments as the operator's schema has them. A kind without a rule, or
// operands that do not fit the kind: no letters, and `reason` says so.
Rule rule_for(const Op& op);

// The kinds that the table knows, sorted.
std::vector<std::string_view> known_kinds();

}  // namespace lowtide::dimensions

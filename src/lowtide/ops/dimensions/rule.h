// The table of dimensions: for each kind of op, the dimensions of operands and results that belong
// together (the D-Graph of MAGIS, ASPLOS 2024, section 4.1).
#pragma once

#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/letter.h"

namespace lowtide::dimensions {

// The rule of an op whose operands and arguments follow the operator's schema. For a kind without a
// rule, or operands that do not fit the kind, there are no letters, and `reason` says why.
Rule rule_for(const Op& op);

// The kinds that the table knows, sorted.
std::vector<std::string_view> known_kinds();

}  // namespace lowtide::dimensions

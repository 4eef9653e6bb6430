// Names of operands in reasons. Private to the folder.
#pragma once

#include <cstddef>
#include <string>

#include "lowtide/graph/operand.h"

namespace lowtide::dimensions {

// "\"self\"", "\"tensors\" 2"; "its result" for a result without a name.
inline std::string name_of(const Operand& operand) {
  if (operand.argument.empty())
    return operand.index < 0 ? "its result" : "its result " + std::to_string(operand.index);
  const std::string name = '"' + operand.argument + '"';
  return operand.index < 0 ? name : name + " " + std::to_string(operand.index);
}

// "dimension 2 of \"self\"".
inline std::string dimension(std::size_t dim, const Operand& operand) {
  return "dimension " + std::to_string(dim) + " of " + name_of(operand);
}

}  // namespace lowtide::dimensions

// How reasons call operands. Private to the folder.
#pragma once

#include <string>

#include "lowtide/graph/operand.h"

namespace lowtide::dimensions {

// "\"self\"", "\"tensors\" 2"; of a result without a name "its result".
inline std::string name_of(const Operand& operand) {
  if (operand.argument.empty())
    return operand.index < 0 ? "its result" : "its result " + std::to_string(operand.index);
  const std::string name = '"' + operand.argument + '"';
  return operand.index < 0 ? name : name + " " + std::to_string(operand.index);
}

}  // namespace lowtide::dimensions

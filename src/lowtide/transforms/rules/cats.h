// aten.cat in the form that the rules use. Private to the folder.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "lowtide/transforms/rules/rewriting.h"

namespace lowtide {

inline constexpr std::array<std::string_view, 1> kCatKinds = {"aten.cat"};

struct Cat {
  OpId op;
  std::size_t dim = 0;
  const Operand* result;
  std::vector<const Operand*> parts;
  std::vector<Operand> places;  // for each operand, its view of the result
};

// Refuses operands whose shapes or number types do not fit.
Cat cat_of(const Rewriting& rewriting, OpId op);

}  // namespace lowtide

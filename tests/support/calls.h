// Calls of operators over dense f32 tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/ops/call.h"

namespace lowtide {

inline Operand operand(std::string argument, std::size_t tensor, std::vector<std::int64_t> shape) {
  Operand made;
  made.argument = std::move(argument);
  made.tensor = TensorId(tensor);
  made.strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) made.strides[d] = stride;
  made.shape = std::move(shape);
  made.dtype = "f32";
  return made;
}

// A product of [rows, 64] with [64, 32], and a sum with itself.
struct ProductAndSum {
  std::vector<Operand> product, sum, of_product, of_sum;
  explicit ProductAndSum(std::int64_t rows)
      : product{operand("self", 0, {rows, 64}), operand("mat2", 1, {64, 32})},
        sum{operand("self", 2, {rows, 32}), operand("other", 2, {rows, 32})},
        of_product{operand("", 2, {rows, 32})},
        of_sum{operand("", 3, {rows, 32})} {}
  Call mm() const { return {"aten.mm", product, of_product, {}}; }
  Call add() const { return {"aten.add", sum, of_sum, {}}; }
};

}  // namespace lowtide

// Graphs whose ops say what they do, for tests: row-major tensors in f32 and views of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/graph/builder.h"

namespace lowtide::test {

using Extents = std::vector<std::int64_t>;

inline Extents row_major(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

inline std::int64_t elements(const Extents& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

inline Literal integers(const Extents& list) {
  Literal::List items;
  for (const std::int64_t item : list) items.push_back({item});
  return {std::move(items)};
}

class Net {
 public:
  // A tensor that no op makes.
  TensorId input(const Extents& shape, std::string name = {}) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.bytes = Bytes(4 * elements(shape));
    tensor.shape = shape;
    tensor.dtype = "f32";
    return builder_.add_tensor(std::move(tensor));
  }

  // All of a tensor, or a view of it.
  static Operand all(std::string argument, TensorId tensor, const Extents& shape) {
    return view(std::move(argument), tensor, shape, row_major(shape));
  }
  static Operand view(std::string argument, TensorId tensor, const Extents& shape,
                      const Extents& strides, std::int64_t offset = 0) {
    return {std::move(argument), -1, tensor, shape, strides, offset, "f32"};
  }

  // An op with one result, a new tensor of this shape.
  TensorId op(std::string kind, std::vector<Operand> operands, const Extents& shape,
              std::vector<Argument> arguments = {}) {
    return ops(std::move(kind), std::move(operands), {shape}, std::move(arguments)).front();
  }
  std::vector<TensorId> ops(std::string kind, std::vector<Operand> operands,
                            const std::vector<Extents>& shapes,
                            std::vector<Argument> arguments = {}) {
    Op op;
    op.kind = std::move(kind);
    op.time = Ticks(1);
    op.arguments = std::move(arguments);
    std::vector<TensorId> inputs, outputs;
    for (const Operand& operand : operands)
      if (std::ranges::find(inputs, operand.tensor) == inputs.end())
        inputs.push_back(operand.tensor);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      outputs.push_back(input(shapes[i]));
      op.results.push_back(all({}, outputs.back(), shapes[i]));
      if (shapes.size() > 1) op.results.back().index = static_cast<std::int64_t>(i);
    }
    op.operands = std::move(operands);
    builder_.add_op(std::move(op), inputs, outputs);
    return outputs;
  }

  void output(TensorId tensor) { builder_.add_output(tensor); }
  Graph build() { return builder_.build(); }

 private:
  GraphBuilder builder_;
};

}  // namespace lowtide::test

// Graphs of one op, for tests of what a kind of op does and costs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/graph/builder.h"

namespace lowtide {

inline Tensor tensor(std::vector<std::int64_t> shape, const std::string& dtype = "f32") {
  Tensor made;
  std::int64_t numbers = 1;
  for (const std::int64_t extent : shape) numbers *= extent;
  made.bytes = Bytes(numbers * (dtype == "bf16" ? 2 : 4));
  made.shape = std::move(shape);
  made.dtype = dtype;
  return made;
}

// One op over inputs of these shapes.
inline Graph one(const std::string& kind, const std::vector<Tensor>& inputs,
                 const std::vector<Tensor>& outputs, TickUnit tick = TickUnit::ns) {
  GraphBuilder builder;
  builder.set_tick(tick);
  OpLinks links;
  for (const Tensor& given : inputs)
    links.inputs.push_back(static_cast<std::int64_t>(builder.add_tensor(given).index()));
  for (const Tensor& made : outputs)
    links.outputs.push_back(static_cast<std::int64_t>(builder.add_tensor(made).index()));
  Op op;
  op.name = "it";
  op.kind = kind;
  op.time = Ticks(7);
  builder.add_op(op, links);
  return builder.build();
}

}  // namespace lowtide

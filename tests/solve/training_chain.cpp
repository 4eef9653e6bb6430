#include "solve/training_chain.h"

#include "lowtide/graph/builder.h"

namespace lowtide {

Graph training_chain(const ChainSettings& settings) {
  GraphBuilder builder;
  const auto add_tensor = [&] {
    Tensor tensor;
    tensor.bytes = Bytes(1);
    return builder.add_tensor(tensor);
  };
  const auto add_op = [&](const std::vector<TensorId>& inputs, bool is_barrier = false) {
    Op op;
    op.time = Ticks(1);
    if (is_barrier) op.kind = kBarrierKind;
    const TensorId made = add_tensor();
    builder.add_op(op, inputs, {made});
    return made;
  };
  std::vector<TensorId> made{add_tensor()};
  std::vector<TensorId> beside;
  if (settings.beside) beside.push_back(add_op({}));
  for (std::size_t i = 0; i < settings.layers; ++i) {
    std::vector<TensorId> inputs{made.back()};
    if (settings.beside) inputs.push_back(beside.front());
    if (settings.mirrored && 2 * i > settings.layers) inputs.push_back(made[settings.layers - i]);
    made.push_back(add_op(inputs));
  }
  TensorId gradient = add_op({made.back()}, settings.barrier);
  for (std::size_t i = settings.layers; i > 0; --i) gradient = add_op({gradient, made[i - 1]});
  builder.add_output(gradient);
  return builder.build();
}

}  // namespace lowtide

// A graph as plain data, to change one thing at a time or to list it otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/base/random.h"
#include "lowtide/graph/builder.h"

namespace lowtide {

struct GraphParts {
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  std::vector<OpLinks> links;
  std::vector<std::int64_t> outputs, order;

  Graph build() const {
    GraphBuilder builder;
    for (const Tensor& tensor : tensors) builder.add_tensor(tensor);
    for (std::size_t i = 0; i < ops.size(); ++i) builder.add_op(ops[i], links[i]);
    builder.set_outputs(outputs);
    if (!order.empty()) builder.set_order(order);
    return builder.build();
  }
};

// The same graph with other indices, names, times and order. `new_index[i]`: of the i-th op.
struct Relisted {
  Graph graph;
  std::vector<OpId> new_index;

  std::vector<OpId> of(const std::vector<OpId>& ops) const {
    std::vector<OpId> moved;
    for (const OpId op : ops) moved.push_back(new_index[op.index()]);
    return moved;
  }
};

inline std::vector<std::size_t> shuffled(std::size_t count, Random& random) {
  std::vector<std::size_t> list(count);
  for (std::size_t i = 0; i < count; ++i) list[i] = i;
  random.shuffle(list);
  return list;
}

inline std::vector<std::size_t> inverted(const std::vector<std::size_t>& list) {
  std::vector<std::size_t> places(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) places[list[i]] = i;
  return places;
}

inline Relisted relisted(const Graph& graph, Random& random) {
  const auto tensors = shuffled(graph.tensor_count(), random);
  const auto ops = shuffled(graph.op_count(), random);
  const auto tensor_at = inverted(tensors), op_at = inverted(ops);
  const auto moved = [](const auto& ids, const std::vector<std::size_t>& at) {
    std::vector<std::int64_t> list;
    for (const auto id : ids) list.push_back(static_cast<std::int64_t>(at[id.index()]));
    return list;
  };
  GraphParts parts;
  for (const std::size_t i : tensors) {
    parts.tensors.push_back(graph.tensor(TensorId(i)));
    parts.tensors.back().name = "n" + std::to_string(random.below(99));
  }
  for (const std::size_t i : ops) {
    const OpId id(i);
    Op op = graph.op(id);
    op.name = "m" + std::to_string(random.below(99));
    op.origin = op.phase = "";
    op.time = Ticks(random.between(0, 9));
    OpLinks links{.inputs = moved(graph.inputs(id), tensor_at),
                  .outputs = moved(graph.outputs(id), tensor_at),
                  .after = moved(graph.after(id), op_at),
                  .mutates = moved(graph.mutates(id), tensor_at)};
    for (const InPlacePair& pair : graph.in_place(id))
      links.in_place.push_back({static_cast<std::int64_t>(tensor_at[pair.input.index()]),
                                static_cast<std::int64_t>(tensor_at[pair.output.index()])});
    for (auto* operands : {&op.operands, &op.results})
      for (Operand& operand : *operands)
        operand.tensor = TensorId(tensor_at[operand.tensor.index()]);
    parts.ops.push_back(std::move(op));
    parts.links.push_back(std::move(links));
  }
  parts.outputs = moved(graph.outputs(), tensor_at);
  std::vector<std::size_t> waits(graph.op_count());
  std::vector<OpId> ready;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    waits[i] = graph.predecessors(OpId(i)).size();
    if (waits[i] == 0) ready.emplace_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random.below(ready.size())], ready.back());
    const OpId op = ready.back();
    ready.pop_back();
    parts.order.push_back(static_cast<std::int64_t>(op_at[op.index()]));
    for (const OpId next : graph.successors(op))
      if (--waits[next.index()] == 0) ready.push_back(next);
  }
  Relisted result{parts.build(), {}};
  for (const std::size_t at : op_at) result.new_index.emplace_back(at);
  return result;
}

}  // namespace lowtide

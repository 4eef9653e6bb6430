// One pass over the ops, one over the tensors.
#include "lowtide/solve/search/state/network.h"

#include <algorithm>

#include "lowtide/solve/search/state/profile.h"

namespace lowtide::solve::search {

namespace {

// For each of so many columns the rows in which it stands, rising.
Csr<Node> transposed(const Csr<std::int32_t>& rows, std::size_t columns) {
  std::vector<std::size_t> next(columns + 1, 0);
  for (std::size_t row = 0; row < rows.rows(); ++row)
    for (std::int32_t column : rows[row]) ++next[Network::at(column) + 1];
  for (std::size_t i = 0; i < columns; ++i) next[i + 1] += next[i];
  const std::vector<std::size_t> begin = next;
  std::vector<Node> items(rows.size());
  for (std::size_t row = 0; row < rows.rows(); ++row)
    for (std::int32_t column : rows[row])
      items[next[Network::at(column)]++] = static_cast<Node>(row);
  Csr<Node> result;
  result.reserve(columns, items.size());
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t k = begin[i]; k < begin[i + 1]; ++k) result.push(items[k]);
    result.end_row();
  }
  return result;
}

}  // namespace

std::string too_large(const Graph& graph) {
  Bytes sum;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.freeable(TensorId(i))) sum += graph.bytes(TensorId(i));
  for (std::size_t i = 0; i < graph.op_count(); ++i) sum += graph.workspace(OpId(i));
  if (static_cast<double>(sum.count()) > Profile::kMostBytes)
    return "it counts bytes in doubles, which are exact only while tensors and workspaces add up "
           "to at most 2^50";
  if (static_cast<double>(graph.total_time().count()) > kMostTicks)
    return "it counts time in doubles, which are exact only while the ops' times add up to at most "
           "2^50";
  return {};
}

Network::Network(const Problem& problem) : graph(problem.graph) {
  ops = static_cast<Node>(graph.op_count());
  const std::size_t nodes = graph.op_count() + 2;
  total_time = static_cast<double>(graph.total_time().count());

  std::vector<Value> number(graph.tensor_count(), -1);
  Bytes always = graph.resident();
  const auto add_value = [&](TensorId id, Node node) {
    number[id.index()] = values++;
    producer.push_back(node);
    bytes.push_back(static_cast<double>(graph.bytes(id).count()));
    own[at(node)] += bytes.back();
  };
  own.assign(nodes, 0);
  workspace.assign(nodes, 0);
  time.assign(nodes, 0);
  repeatable.assign(nodes, 0);
  outputs_from.assign(nodes + 1, 0);
  for (Node node = 0; node < ops; ++node) {
    const OpId op(at(node));
    outputs_from[at(node)] = values;
    workspace[at(node)] = own[at(node)] = static_cast<double>(graph.workspace(op).count());
    time[at(node)] = static_cast<double>(graph.time(op).count());
    repeatable[at(node)] = graph.recomputable(op);
    for (TensorId output : graph.outputs(op)) add_value(output, node);
  }
  outputs_from[at(source())] = values;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.is_input(id)) continue;
    if (graph.freeable(id))
      add_value(id, source());
    else
      always += graph.bytes(id);
  }
  outputs_from[at(sink())] = outputs_from[at(sink()) + 1] = values;
  // Negative is hopeless by however much, and must not come near the depth of a hole.
  fixed = static_cast<double>(always.count());
  budget = static_cast<double>(std::max((problem.budget - always).count(), std::int64_t{-1}));

  for (Node node = 0; node < ops; ++node) {
    for (TensorId input : graph.inputs(OpId(at(node))))
      if (number[input.index()] >= 0) reads.push(number[input.index()]);
    reads.end_row();
  }
  reads.end_row();
  for (TensorId output : graph.outputs())
    if (number[output.index()] >= 0) reads.push(number[output.index()]);
  reads.end_row();

  readers = transposed(reads, at(values));
  for (Node node = 0; node < ops + 2; ++node) {
    if (node < ops)
      for (TensorId changed : graph.mutates(OpId(at(node)))) {
        const auto end = [&](OpId op) {
          const auto ended = static_cast<Node>(op.index());
          if (ended != node && may_repeat(ended)) ended_by.push(ended);
        };
        for (OpId reader : graph.consumers(changed)) end(reader);
        if (graph.is_output(changed) && !graph.is_input(changed)) end(graph.producer(changed));
      }
    ended_by.end_row();
  }
  enders = transposed(ended_by, nodes);
}

}  // namespace lowtide::solve::search

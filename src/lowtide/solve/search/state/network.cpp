// One pass over the ops, one over the tensors.
#include "lowtide/solve/search/state/network.h"

#include <algorithm>
#include <vector>

#include "lowtide/solve/search/state/profile.h"

namespace lowtide::solve::search {

namespace {

// For each of so many columns the rows in which it stands, rising.
template <class Column, class Row>
Csr<Row, Column> transposed(const Csr<Column, Row>& rows, std::size_t columns) {
  std::vector<std::size_t> next(columns + 1, 0);
  for (const Row row : AllIds<Row>(rows.rows()))
    for (const Column column : rows[row]) ++next[column.index() + 1];
  for (std::size_t i = 0; i < columns; ++i) next[i + 1] += next[i];
  const std::vector<std::size_t> begin = next;
  std::vector<Row> items(rows.size());
  for (const Row row : AllIds<Row>(rows.rows()))
    for (const Column column : rows[row]) items[next[column.index()]++] = row;
  Csr<Row, Column> result;
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
  ops = graph.op_count();
  const std::size_t nodes = node_count();
  total_time = static_cast<double>(graph.total_time().count());

  IdVector<TensorId, Value> number(graph.tensor_count());
  Bytes always = graph.resident();
  const auto add_value = [&](TensorId id, Node node) {
    number[id] = Value(bytes.size());
    producer.push_back(node);
    bytes.push_back(static_cast<double>(graph.bytes(id).count()));
    own[node] += bytes.back();
  };
  own.assign(nodes, 0);
  workspace.assign(nodes, 0);
  time.assign(nodes, 0);
  repeatable.assign(nodes, 0);
  outputs_from.assign(nodes + 1, Value(0));
  for (const OpId op : AllIds<OpId>(ops)) {
    const Node node = node_of(op);
    outputs_from[node] = Value(bytes.size());
    workspace[node] = own[node] = static_cast<double>(graph.workspace(op).count());
    time[node] = static_cast<double>(graph.time(op).count());
    repeatable[node] = graph.recomputable(op);
    for (TensorId output : graph.outputs(op)) add_value(output, node);
  }
  outputs_from[source()] = Value(bytes.size());
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.is_input(id)) continue;
    if (graph.freeable(id))
      add_value(id, source());
    else
      always += graph.bytes(id);
  }
  outputs_from[sink()] = outputs_from.back() = Value(bytes.size());
  // Negative is hopeless by however much, and must not come near the depth of a hole.
  fixed = static_cast<double>(always.count());
  budget = static_cast<double>(std::max((problem.budget - always).count(), std::int64_t{-1}));

  for (const OpId op : AllIds<OpId>(ops)) {
    for (TensorId input : graph.inputs(op))
      if (number[input].valid()) reads.push(number[input]);
    reads.end_row();
  }
  reads.end_row();
  for (TensorId output : graph.outputs())
    if (number[output].valid()) reads.push(number[output]);
  reads.end_row();

  for (const Node node : AllIds<Node>(nodes)) {
    if (is_op(node))
      for (const InPlacePair& pair : graph.overwrites(op_of(node)))
        overwritable.push({number[pair.input], number[pair.output]});
    overwritable.end_row();
  }

  readers = transposed(reads, value_count());
  for (const Node node : AllIds<Node>(nodes)) {
    if (is_op(node))
      for (TensorId changed : graph.mutates(op_of(node))) {
        const auto end = [&](OpId op) {
          const Node ended = node_of(op);
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

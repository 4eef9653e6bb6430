// One pass over the ops, one over the tensors.
#include "lowtide/solve/local/common/state/network.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "lowtide/solve/local/common/state/profile.h"
#include "lowtide/solve/sequence/placement.h"

namespace lowtide::solve::local {

namespace {

// The bytes of a small tensor, relative to those of the largest.
constexpr double kSmallShare = 1e-4;

// For each column the rows that contain it, ascending.
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

std::string too_large(const Problem& problem) {
  const Graph& graph = problem.graph;
  Bytes sum;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (const TensorId id(i); graph.freeable(id) || problem.machine) sum += graph.bytes(id);
  for (std::size_t i = 0; i < graph.op_count(); ++i) sum += graph.workspace(OpId(i));
  if (static_cast<double>(sum.count()) > Profile::kMostBytes)
    return "it counts bytes in doubles, which are exact only while tensors and workspaces add up "
           "to at most 2^50";
  return too_long(problem);
}

Network::Network(const Problem& problem)
    : graph(problem.graph), machine(problem.machine), transfers(machine.has_value()) {
  ops = graph.op_count();
  total_time = static_cast<double>(graph.total_time().count());

  number.assign(graph.tensor_count(), Value());
  Bytes always = graph.resident();
  const auto add_value = [&](TensorId id, Node node) {
    number[id] = Value(bytes.size());
    producer.push_back(node);
    tensor.push_back(id);
    bytes.push_back(static_cast<double>(graph.bytes(id).count()));
    ++made[node].count;
    if (!transfers || !graph.on_host(id)) own[node] += bytes.back();
  };
  const std::size_t firsts = first_count();
  own.assign(firsts, 0);
  workspace.assign(firsts, 0);
  time.assign(firsts, 0);
  repeatable.assign(firsts, 0);
  made.assign(firsts, {});
  for (const OpId op : AllIds<OpId>(ops)) {
    const Node node = node_of(op);
    made[node].first = Value(bytes.size());
    workspace[node] = own[node] = static_cast<double>(graph.workspace(op).count());
    time[node] = static_cast<double>(graph.time(op).count());
    repeatable[node] = graph.recomputable(op);
    for (TensorId output : graph.outputs(op)) add_value(output, node);
  }
  made[source()].first = Value(bytes.size());
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.is_input(id)) continue;
    if (transfers ? !graph.stays(id) : graph.freeable(id))
      add_value(id, source());
    else
      always += graph.bytes(id);
  }
  made[sink()].first = Value(bytes.size());
  // A negative budget is infeasible by any amount, and must stay far from the offset of a hole.
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
  if (transfers)
    for (const Value value : outputs(source())) {
      const TensorId id = tensor[value];
      if (!graph.freeable(id) && !graph.on_host(id) && !graph.is_output(id)) reads.push(value);
    }
  reads.end_row();
  readers = transposed(reads, value_count());

  for (const Node node : AllIds<Node>(firsts)) {
    if (is_op(node))
      for (const InPlacePair& pair : graph.overwrites(op_of(node)))
        overwritable.push({number[pair.input], number[pair.output]});
    overwritable.end_row();
  }
  for (const Node node : AllIds<Node>(firsts)) {
    if (is_op(node))
      for (TensorId id : graph.mutates(op_of(node))) {
        const auto end = [&](OpId op) {
          const Node ended = node_of(op);
          if (ended != node && may_repeat(ended)) ended_by.push(ended);
        };
        for (OpId reader : graph.consumers(id)) end(reader);
        if (graph.is_output(id) && !graph.is_input(id)) end(graph.producer(id));
      }
    ended_by.end_row();
  }
  enders = transposed(ended_by, firsts);
  if (transfers) add_transfers(problem);
}

void Network::add_transfers(const Problem& problem) {
  const std::size_t values = value_count();
  away.assign(values, 0);
  changed_by.assign(values, Node());
  change.assign(values, -1);
  host_home = 0;
  for (const double size : bytes) small = std::max(small, kSmallShare * size);
  host_budget = problem.host_budget ? static_cast<double>(problem.host_budget->count())
                                    : std::numeric_limits<double>::infinity();
  const auto ticks = [](Ticks span) { return static_cast<double>(span.count()); };
  for (const Value value : bytes.ids()) {
    const Bytes size = graph.bytes(tensor[value]);
    copy_out.push_back(ticks(machine->device_to_host.transfer_time(size)));
    copy_in.push_back(ticks(machine->host_to_device.transfer_time(size)));
    if (!graph.on_host(tensor[value])) continue;
    away[value] = 1;
    host_home += bytes[value];
  }
  barrier.assign(first_count(), 0);
  for (const OpId op : AllIds<OpId>(ops)) barrier[node_of(op)] = graph.is_barrier(op);
  std::int32_t changes = 0;
  for (const OpId op : AllIds<OpId>(ops)) {
    for (TensorId id : graph.mutates(op))
      if (const Value value = number[id]; value.valid()) {
        changed.push(value);
        changed_values.push_back(value);
        changed_by[value] = node_of(op);
        change[value] = changes++;
      }
    changed.end_row();
  }
  for (std::size_t i = ops; i < first_count(); ++i) changed.end_row();

  for (const bool fetches : {true, false})
    for (const Value value : bytes.ids()) {
      time.push_back(0);
      workspace.push_back(0);
      own.push_back(fetches ? bytes[value] : 0);
      repeatable.push_back(0);
      barrier.push_back(0);
      made.push_back({value, fetches ? 1 : 0});
      if (!fetches) reads.push(value);
      reads.end_row();
      changed.end_row();
      overwritable.end_row();
      ended_by.end_row();
      enders.end_row();
    }
}

}  // namespace lowtide::solve::local

// Validation and linking, each pass linear in ops, tensors and links.
#include "lowtide/graph/builder.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/graph/no_such.h"

namespace lowtide {

namespace {

std::string pointer(std::string_view list, std::size_t index, std::string_view rest = {}) {
  return "/" + std::string(list) + "/" + std::to_string(index) + std::string(rest);
}

[[noreturn]] void refuse(std::string place, std::string reason) {
  throw InputError(std::move(place), std::move(reason));
}

// Turns the rows of one kind of link into ids: range-checked, first occurrence of each kept.
template <class IdType>
Csr<IdType> to_ids(const Csr<std::int64_t>& rows, const Graph& graph, std::size_t limit,
                   std::string_view key, std::string_view what, bool refuse_repeats) {
  Csr<IdType> result;
  result.reserve(rows.rows(), rows.size());
  std::vector<std::size_t> seen(limit, SIZE_MAX);
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const auto items = rows[row];
    for (std::size_t k = 0; k < items.size(); ++k) {
      const auto place = [&] {
        return pointer("ops", row, "/" + std::string(key) + "/" + std::to_string(k));
      };
      if (!in_range(items[k], limit))
        refuse(place(), graph.label(OpId(row)) + ": " + no_such(what, items[k], limit));
      const auto index = static_cast<std::size_t>(items[k]);
      if (seen[index] == row) {
        if (!refuse_repeats) continue;
        refuse(place(), graph.label(OpId(row)) + " lists " + std::string(what) + " " +
                            std::to_string(index) + " twice as output");
      }
      seen[index] = row;
      result.push(IdType(index));
    }
    result.end_row();
  }
  return result;
}

// Rows of the reverse relation: for pairs (from, to), row `to` lists every `from`, in order.
template <class From, class To, class ForEach>
Csr<From> reverse(std::size_t rows, ForEach for_each_pair) {
  std::vector<std::size_t> start(rows + 1, 0);
  for_each_pair([&](From, To to) { ++start[to.index() + 1]; });
  for (std::size_t i = 0; i < rows; ++i) start[i + 1] += start[i];
  std::vector<From> items(start[rows]);
  auto next = start;
  for_each_pair([&](From from, To to) { items[next[to.index()]++] = from; });
  Csr<From> result;
  result.reserve(rows, items.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = start[i]; k < start[i + 1]; ++k) result.push(items[k]);
    result.end_row();
  }
  return result;
}

// Names the ops of one cycle; `missing` holds the ops that a topological sort could not place.
std::string describe_cycle(const Graph& graph, const std::vector<std::size_t>& missing) {
  std::vector<std::uint8_t> stuck(graph.op_count(), 0);
  for (std::size_t i : missing) stuck[i] = 1;
  std::vector<std::size_t> visited_at(graph.op_count(), SIZE_MAX);
  std::vector<OpId> path;
  OpId at(missing.front());
  while (visited_at[at.index()] == SIZE_MAX) {
    visited_at[at.index()] = path.size();
    path.push_back(at);
    for (OpId before : graph.predecessors(at))
      if (stuck[before.index()] != 0) {
        at = before;
        break;
      }
  }
  std::vector<OpId> cycle(path.begin() + static_cast<std::ptrdiff_t>(visited_at[at.index()]),
                          path.end());
  std::reverse(cycle.begin(), cycle.end());
  std::string text;
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(cycle.size(), kShown); ++i)
    text += graph.label(cycle[i]) + " -> ";
  if (cycle.size() > kShown) text += "... -> ";
  return text + graph.label(cycle.front());
}

}  // namespace

void GraphBuilder::reserve(std::size_t ops, std::size_t tensors) {
  ops_.reserve(ops);
  tensors_.reserve(tensors);
}

TensorId GraphBuilder::add_tensor(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return TensorId(tensors_.size() - 1);
}

OpId GraphBuilder::add_op(Op op, const OpLinks& links) {
  ops_.push_back(std::move(op));
  const auto append = [](auto& rows, const auto& items) {
    for (const auto& item : items) rows.push(item);
    rows.end_row();
  };
  append(inputs_, links.inputs);
  append(made_, links.outputs);
  append(after_, links.after);
  append(mutates_, links.mutates);
  append(in_place_, links.in_place);
  append(operands_, links.operand_tensors);
  append(results_, links.result_tensors);
  return OpId(ops_.size() - 1);
}

OpId GraphBuilder::add_op(Op op, const std::vector<TensorId>& inputs,
                          const std::vector<TensorId>& outputs) {
  OpLinks links;
  for (TensorId id : inputs) links.inputs.push_back(static_cast<std::int64_t>(id.index()));
  for (TensorId id : outputs) links.outputs.push_back(static_cast<std::int64_t>(id.index()));
  return add_op(std::move(op), links);
}

void GraphBuilder::set_order(std::vector<std::int64_t> order) {
  order_ = std::move(order);
  has_order_ = true;
}

Graph GraphBuilder::build() {
  if (ops_.size() > kMaxCount || tensors_.size() > kMaxCount)
    refuse("", "more than 2^31 ops or tensors");
  Graph graph;
  graph.name_ = std::move(name_);
  graph.tick_ = tick_;
  graph.resident_ = resident_;
  graph.ops_ = std::move(ops_);
  graph.tensors_ = std::move(tensors_);
  sum_up(graph);
  const std::size_t ops = graph.op_count(), tensors = graph.tensor_count();
  graph.inputs_ = to_ids<TensorId>(inputs_, graph, tensors, "inputs", "tensor", false);
  graph.outputs_of_ = to_ids<TensorId>(made_, graph, tensors, "outputs", "tensor", true);
  graph.after_ = to_ids<OpId>(after_, graph, ops, "after", "op", false);
  graph.mutates_ = to_ids<TensorId>(mutates_, graph, tensors, "mutates", "tensor", false);
  link_consumers(graph);
  check_operands(graph);
  link_in_place(graph);
  link_precedence(graph);
  place_order(graph);
  *this = GraphBuilder();
  return graph;
}

void GraphBuilder::sum_up(Graph& graph) const {
  // Adds the number at `place` to a sum; `what` names it in the message if the sum overflows.
  const auto add = [](auto& sum, auto part, const auto& place, const auto& what,
                      std::string_view all) {
    if (part.count() < 0) refuse(place(), what() + " is negative: " + std::to_string(part.count()));
    try {
      sum = checked_add(sum, part);
    } catch (const OverflowError&) {
      refuse(place(), what() + " " + std::to_string(part.count()) + ": the " + std::string(all) +
                          " of the graph add up to 2^63 or more");
    }
  };
  Bytes bytes;
  add(
      bytes, graph.resident_, [] { return "/resident_bytes"; },
      [] { return std::string("resident_bytes"); }, "bytes");
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const Bytes size = graph.tensors_[i].bytes;
    add(
        bytes, size, [&] { return pointer("tensors", i, "/bytes"); },
        [&] { return graph.label(TensorId(i)) + ": bytes"; }, "bytes");
    graph.bytes_.push_back(size);
  }
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops_[i];
    add(
        graph.total_time_, op.time, [&] { return pointer("ops", i, "/time"); },
        [&] { return graph.label(OpId(i)) + ": time"; }, "times");
    add(
        bytes, op.workspace, [&] { return pointer("ops", i, "/workspace"); },
        [&] { return graph.label(OpId(i)) + ": workspace"; }, "bytes");
    graph.times_.push_back(op.time);
    graph.workspaces_.push_back(op.workspace);
  }
}

void GraphBuilder::link_consumers(Graph& graph) const {
  graph.producers_.assign(graph.tensor_count(), OpId());
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    for (std::size_t k = 0; k < graph.outputs(op).size(); ++k) {
      const TensorId made = graph.outputs(op)[k];
      OpId& producer = graph.producers_[made.index()];
      if (producer.valid())
        refuse(pointer("ops", i, "/outputs/" + std::to_string(k)),
               graph.label(made) + " has two producers: " + graph.label(producer) + " and " +
                   graph.label(op));
      producer = op;
    }
  }
  std::vector<OpId> read_by(graph.tensor_count()), changed_by(graph.tensor_count());
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    for (TensorId input : graph.inputs(op)) {
      if (graph.producer(input) == op)
        refuse(pointer("ops", i),
               graph.label(op) + " makes one of its own inputs, " + graph.label(input));
      read_by[input.index()] = op;
    }
    for (std::size_t k = 0; k < graph.mutates(op).size(); ++k) {
      const TensorId changed = graph.mutates(op)[k];
      if (read_by[changed.index()] != op)
        refuse(pointer("ops", i, "/mutates/" + std::to_string(k)),
               graph.label(op) + " mutates " + graph.label(changed) +
                   ", which is not among its inputs; list it there too");
      // Both ops read the tensor, so each would have to run before the other.
      if (changed_by[changed.index()].valid())
        refuse(pointer("ops", i, "/mutates/" + std::to_string(k)),
               graph.label(op) + " and " + graph.label(changed_by[changed.index()]) +
                   " both mutate " + graph.label(changed) +
                   "; nothing may read it after the first");
      changed_by[changed.index()] = op;
    }
    graph.is_barrier_.push_back(graph.op(op).kind == kBarrierKind ? 1 : 0);
    if (graph.on_network(op)) {
      if (graph.is_barrier(op))
        refuse(pointer("ops", i, "/lane"),
               graph.label(op) + " is a barrier, which runs on the compute lane alone");
      graph.has_network_ops_ = true;
      graph.network_time_ += graph.time(op);
    }
    graph.recomputable_.push_back(graph.op(op).recomputable && !graph.outputs(op).empty() &&
                                  graph.mutates(op).empty() && !graph.is_barrier(op));
  }
  graph.consumers_ = reverse<OpId, TensorId>(graph.tensor_count(), [&](auto pair) {
    for (std::size_t i = 0; i < graph.op_count(); ++i)
      for (TensorId input : graph.inputs(OpId(i))) pair(OpId(i), input);
  });
  graph.is_output_.assign(graph.tensor_count(), 0);
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const auto place = [&] { return pointer("outputs", k); };
    if (!in_range(outputs_[k], graph.tensor_count()))
      refuse(place(), no_such("tensor", outputs_[k], graph.tensor_count()));
    const TensorId id(static_cast<std::size_t>(outputs_[k]));
    if (graph.is_output(id)) refuse(place(), graph.label(id) + " is listed twice as graph output");
    graph.is_output_[id.index()] = 1;
    graph.outputs_.push_back(id);
  }
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (const TensorId id(i); graph.is_input(id)) {
      graph.input_bytes_ += graph.bytes(id);
      graph.has_tensors_on_host_ |= graph.on_host(id);
    }
}

void GraphBuilder::link_precedence(Graph& graph) const {
  std::vector<std::size_t> seen(graph.op_count(), SIZE_MAX);
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    const auto add = [&](OpId before) {
      if (!before.valid() || seen[before.index()] == i) return;
      seen[before.index()] = i;
      graph.predecessors_.push(before);
    };
    for (TensorId input : graph.inputs(op)) add(graph.producer(input));
    for (OpId before : graph.after(op)) add(before);
    for (TensorId changed : graph.mutates(op))
      for (OpId reader : graph.consumers(changed))
        if (reader != op) add(reader);
    graph.predecessors_.end_row();
  }
  graph.successors_ = reverse<OpId, OpId>(graph.op_count(), [&](auto pair) {
    for (std::size_t i = 0; i < graph.op_count(); ++i)
      for (OpId before : graph.predecessors(OpId(i))) pair(OpId(i), before);
  });

  std::vector<std::size_t> waiting(graph.op_count());
  std::vector<OpId> ready;
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    waiting[i] = graph.predecessors(OpId(i)).size();
    if (waiting[i] == 0) ready.push_back(OpId(i));
  }
  std::size_t placed = 0;
  while (!ready.empty()) {
    const OpId op = ready.back();
    ready.pop_back();
    ++placed;
    for (OpId next : graph.successors(op))
      if (--waiting[next.index()] == 0) ready.push_back(next);
  }
  if (placed == graph.op_count()) return;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    if (waiting[i] > 0) missing.push_back(i);
  refuse(pointer("ops", missing.front()), "cycle: " + describe_cycle(graph, missing));
}

void GraphBuilder::place_order(Graph& graph) const {
  const std::size_t ops = graph.op_count();
  graph.position_.assign(ops, SIZE_MAX);
  const auto place = [&](std::size_t k) { return has_order_ ? pointer("order", k) : "/ops"; };
  const std::size_t length = has_order_ ? order_.size() : ops;
  for (std::size_t k = 0; k < length; ++k) {
    const std::int64_t index = has_order_ ? order_[k] : static_cast<std::int64_t>(k);
    if (!in_range(index, ops)) refuse(place(k), no_such("op", index, ops));
    const OpId op(static_cast<std::size_t>(index));
    if (graph.position(op) != SIZE_MAX)
      refuse(place(k), graph.label(op) + " is listed twice in the order");
    for (OpId before : graph.predecessors(op))
      if (graph.position(before) == SIZE_MAX)
        refuse(place(k), "the order is not topological: " + graph.label(op) + " stands before " +
                             graph.label(before) + ", which must come first" +
                             (has_order_ ? "" : "; give an \"order\" or list the ops in order"));
    graph.position_[op.index()] = k;
    graph.order_.push_back(op);
  }
  if (length != ops)
    refuse("/order",
           "the order has " + std::to_string(length) + " of " + std::to_string(ops) + " ops");
}

}  // namespace lowtide

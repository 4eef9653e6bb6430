// One pass over the fields in file order.
#include "lowtide/graph/hash.h"

#include <bit>
#include <string_view>

#include "lowtide/base/sha256.h"

namespace lowtide {

namespace {

// Graphs without these fields keep the hash that they had before the fields existed.
bool has_extensions(const Graph& graph) {
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    if (!graph.in_place(OpId(i)).empty()) return true;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.tensor(TensorId(i)).stays || graph.tensor(TensorId(i)).home == Home::host)
      return true;
  return false;
}

// Every list and text begins with its length, every literal with its kind, so different graphs have
// different streams.
class Stream {
 public:
  void number(std::int64_t value) { sha_.add(value); }
  void count(std::size_t n) { sha_.add(static_cast<std::int64_t>(n)); }
  void text(std::string_view characters) {
    count(characters.size());
    for (const char c : characters) sha_.add_byte(static_cast<std::uint8_t>(c));
  }
  void numbers(const std::vector<std::int64_t>& list) {
    count(list.size());
    for (const std::int64_t value : list) number(value);
  }
  void operands(const std::vector<Operand>& list) {
    count(list.size());
    for (const Operand& operand : list) {
      text(operand.argument);
      number(operand.index);
      count(operand.tensor.index());
      numbers(operand.shape);
      numbers(operand.strides);
      number(operand.offset);
      text(operand.dtype);
    }
  }
  void literal(const Literal& literal) {
    count(literal.value.index());
    std::visit([this](const auto& value) { one(value); }, literal.value);
  }
  std::string hex() { return sha_.hex(); }

 private:
  void one(std::monostate) {}
  void one(bool value) { number(value ? 1 : 0); }
  void one(std::int64_t value) { number(value); }
  void one(double value) { number(std::bit_cast<std::int64_t>(value)); }
  void one(const std::string& value) { text(value); }
  void one(const Literal::List& list) {
    count(list.size());
    for (const Literal& item : list) literal(item);
  }
  void one(const Literal::Members& members) {
    count(members.size());
    for (const auto& [name, item] : members) {
      text(name);
      literal(item);
    }
  }

  Sha256 sha_;
};

}  // namespace

std::string graph_hash(const Graph& graph) {
  Sha256 sha;
  const auto count = [&](std::size_t n) { sha.add(static_cast<std::int64_t>(n)); };
  const auto ids = [&](const auto& list) {
    count(list.size());
    for (const auto id : list) count(id.index());
  };
  const bool extended = has_extensions(graph);
  sha.add(extended ? 2 : 1);
  count(graph.tensor_count());
  count(graph.op_count());
  sha.add(graph.resident().count());
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    sha.add(graph.bytes(TensorId(i)).count());
    sha.add(graph.tensor(TensorId(i)).releasable ? 1 : 0);
  }
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    sha.add(graph.time(op).count());
    sha.add(graph.workspace(op).count());
    sha.add((graph.op(op).recomputable ? 1 : 0) | (graph.is_barrier(op) ? 2 : 0) |
            (graph.on_network(op) ? 4 : 0));
    ids(graph.inputs(op));
    ids(graph.outputs(op));
    ids(graph.after(op));
    ids(graph.mutates(op));
    if (!extended) continue;
    count(graph.in_place(op).size());
    for (const InPlacePair& pair : graph.in_place(op)) {
      count(pair.input.index());
      count(pair.output.index());
    }
  }
  if (extended)
    for (std::size_t i = 0; i < graph.tensor_count(); ++i)
      sha.add((graph.tensor(TensorId(i)).stays ? 1 : 0) |
              (graph.tensor(TensorId(i)).home == Home::host ? 2 : 0));
  ids(graph.outputs());
  for (OpId op : graph.order()) count(op.index());
  return "sha256:" + sha.hex();
}

std::string transform_hash(const Graph& graph) {
  Stream stream;
  stream.number(1);
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) {
    stream.numbers(graph.tensor(id).shape);
    stream.text(graph.tensor(id).dtype);
  }
  for (const OpId id : AllIds<OpId>(graph.op_count())) {
    const Op& op = graph.op(id);
    stream.text(op.kind);
    stream.operands(op.operands);
    stream.operands(op.results);
    stream.count(op.arguments.size());
    for (const Argument& argument : op.arguments) {
      stream.text(argument.name);
      stream.literal(argument.value);
    }
  }
  return "sha256:" + stream.hex();
}

}  // namespace lowtide

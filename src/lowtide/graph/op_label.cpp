// Ordered lists are hashed as streams, and sets of named entries as sums.
#include "lowtide/graph/op_label.h"

#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace lowtide {

namespace {

constexpr std::uint64_t kAmongInputs = std::uint64_t{1} << 32;
constexpr std::uint64_t kNowhere = std::uint64_t{1} << 33;

Digest literal_label(const Literal& literal) {
  Digester digest;
  digest.add(literal.value.index());
  struct Visitor {
    Digester& digest;
    void operator()(std::monostate) const {}
    void operator()(bool value) const { digest.add(value ? 1 : 0); }
    void operator()(std::int64_t value) const { digest.add(static_cast<std::uint64_t>(value)); }
    void operator()(double value) const { digest.add(std::bit_cast<std::uint64_t>(value)); }
    void operator()(const std::string& value) const { digest.add(std::string_view(value)); }
    void operator()(const Literal::List& list) const {
      digest.add(list.size());
      for (const Literal& item : list) digest.add(literal_label(item));
    }
    void operator()(const Literal::Members& members) const {
      Digest sum;
      for (const auto& [name, value] : members)
        sum += Digester().add(std::string_view(name)).add(literal_label(value)).get();
      digest.add(members.size()).add(sum);
    }
  };
  std::visit(Visitor{digest}, literal.value);
  return digest.get();
}

// Hashes a JSON object given as text: the sum over its members, without "source", where some front
// ends store the line of source.
Digest attributes_label(std::string_view text) {
  Digest sum;
  std::string member;
  const auto end_member = [&] {
    if (!member.empty() && !member.starts_with("\"source\":"))
      sum += Digester().add(std::string_view(member)).get();
    member.clear();
  };
  int depth = 0;
  bool quoted = false, escaped = false;
  for (const char c : text) {
    if (quoted) {
      quoted = c != '"' || escaped;
      escaped = c == '\\' && !escaped;
    } else {
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
      if (c == '}' || c == ']') --depth;
      const bool outer = depth == 0 || (depth == 1 && c == ',');
      if (c == '{' || c == '[') ++depth;
      if (outer) {
        end_member();
        continue;
      }
      quoted = c == '"';
    }
    member += c;
  }
  return sum;
}

// Finds the position of a tensor in a list of links. Operands are mostly in the same order as
// links, so each search begins where the last one ended.
class Places {
 public:
  explicit Places(std::span<const TensorId> links) : links_(links) {}
  std::uint64_t of(TensorId tensor) {
    for (std::size_t tried = 0; tried < links_.size(); ++tried) {
      if (links_[next_] == tensor) return next_;
      next_ = next_ + 1 < links_.size() ? next_ + 1 : 0;
    }
    return kNowhere;
  }

 private:
  std::span<const TensorId> links_;
  std::size_t next_ = 0;
};

Digest operand_label(const Operand& operand, std::uint64_t place) {
  return Digester()
      .add(operand.argument)
      .add(static_cast<std::uint64_t>(operand.index))
      .add(place)
      .add_all(operand.shape)
      .add_all(operand.strides)
      .add(static_cast<std::uint64_t>(operand.offset))
      .add(operand.dtype)
      .get();
}

}  // namespace

Digest tensor_label(const Tensor& tensor, Alike alike) {
  Digester digest;
  digest.add(static_cast<std::uint64_t>(tensor.bytes.count()));
  if (alike == Alike::code) digest.add_all(tensor.shape).add(tensor.dtype);
  return digest.get();
}

Digest op_label(const Graph& graph, OpId id, std::span<const Digest> tensors, Alike alike) {
  const Op& op = graph.op(id);
  const auto inputs = graph.inputs(id), outputs = graph.outputs(id);
  Places read(inputs), made(outputs);
  Digest operands, results, arguments, mutates, in_place;
  if (alike == Alike::code) {
    for (const Operand& operand : op.operands)
      operands += operand_label(operand, read.of(operand.tensor));
    for (const Operand& result : op.results) {
      std::uint64_t place = made.of(result.tensor);
      if (place == kNowhere) place = kAmongInputs | read.of(result.tensor);
      results += operand_label(result, place);
    }
    for (const Argument& argument : op.arguments)
      arguments += Digester().add(argument.name).add(literal_label(argument.value)).get();
    // Attributes are parameters too, but are used only if nothing else distinguishes ops.
    if (op.arguments.empty()) arguments = attributes_label(op.attributes);
  }
  for (TensorId tensor : graph.mutates(id)) mutates += Digester().add(read.of(tensor)).get();
  for (const InPlacePair& pair : graph.in_place(id))
    in_place += Digester().add(read.of(pair.input)).add(made.of(pair.output)).get();

  Digester digest;
  if (alike == Alike::code) digest.add(op.kind);
  digest.add((graph.recomputable(id) ? 1 : 0) | (graph.on_network(id) ? 2 : 0));
  digest.add(static_cast<std::uint64_t>(graph.workspace(id).count()));
  digest.add(inputs.size()).add(outputs.size());
  if (alike == Alike::code)
    digest.add(op.operands.size()).add(op.results.size()).add(op.arguments.size());
  digest.add(graph.mutates(id).size()).add(graph.in_place(id).size());
  for (const Digest& tensor : tensors) digest.add(tensor);
  for (const Digest& sum : {operands, results, arguments, mutates, in_place}) digest.add(sum);
  return digest.get();
}

}  // namespace lowtide

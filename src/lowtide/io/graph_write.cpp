// Writes graphs. A field that equals its default is omitted.
#include <algorithm>
#include <array>
#include <utility>

#include "lowtide/io/graph_json.h"
#include "lowtide/io/json.h"
#include "lowtide/io/operand_json.h"

namespace lowtide::io {

namespace {

// Writes one object on one line, with commas between members.
class Line {
 public:
  explicit Line(std::string& out) : out_(out) { out_ += '{'; }
  ~Line() { out_ += '}'; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void key(std::string_view name) {
    if (!first_) out_ += ", ";
    first_ = false;
    append_json_string(out_, name);
    out_ += ": ";
  }
  void integer(std::string_view name, std::int64_t value) {
    key(name);
    out_ += std::to_string(value);
  }
  void text(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    key(name);
    append_json_string(out_, value);
  }
  void boolean(std::string_view name, bool value) {
    key(name);
    out_ += value ? "true" : "false";
  }

 private:
  std::string& out_;
  bool first_ = true;
};

template <class Range, class Number>
void append_list(std::string& out, const Range& range, Number number) {
  out += '[';
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += ", ";
    first = false;
    out += std::to_string(number(item));
  }
  out += ']';
}

const auto kIndex = [](auto id) { return id.index(); };

// The same for lists that may be as long as the graph: several entries to a line.
template <class Range>
void append_long_list(std::string& out, const Range& ids) {
  constexpr std::size_t kLineItems = 20;
  if (ids.size() <= kLineItems) return append_list(out, ids, kIndex);
  out += '[';
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    out += i % kLineItems == 0 ? "\n    " : " ";
    out += std::to_string(ids[i].index());
  }
  out += "\n  ]";
}

void append_tensor(std::string& out, const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  Line line(out);
  line.text("name", tensor.name);
  line.integer("bytes", tensor.bytes.count());
  if (tensor.role != (graph.is_input(id) ? Role::input : Role::activation))
    line.text("role", to_string(tensor.role));
  if (tensor.releasable) line.boolean("releasable", true);
  if (tensor.stays) line.boolean("stays", true);
  if (tensor.home != Home::device) line.text("home", to_string(tensor.home));
  // A scalar has an empty shape; every tensor with a number type has a shape.
  if (!tensor.shape.empty() || !tensor.dtype.empty()) {
    line.key("shape");
    append_list(out, tensor.shape, [](std::int64_t extent) { return extent; });
  }
  line.text("dtype", tensor.dtype);
}

void append_op(std::string& out, const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  Line line(out);
  line.text("name", op.name);
  line.text("kind", op.kind);
  line.key("inputs");
  append_list(out, graph.inputs(id), kIndex);
  line.key("outputs");
  append_list(out, graph.outputs(id), kIndex);
  line.integer("time", op.time.count());
  if (op.workspace.count() != 0) line.integer("workspace", op.workspace.count());
  if (!op.recomputable) line.boolean("recomputable", false);
  if (op.lane != Lane::compute) line.text("lane", to_string(op.lane));
  if (!graph.after(id).empty()) {
    line.key("after");
    append_list(out, graph.after(id), kIndex);
  }
  if (!graph.mutates(id).empty()) {
    line.key("mutates");
    append_list(out, graph.mutates(id), kIndex);
  }
  if (!graph.in_place(id).empty()) {
    line.key("in_place");
    out += '[';
    for (const InPlacePair& pair : graph.in_place(id)) {
      if (out.back() != '[') out += ", ";
      append_list(out, std::array{pair.input, pair.output}, kIndex);
    }
    out += ']';
  }
  const auto operands = [&](std::string_view key, const std::vector<Operand>& list) {
    if (list.empty()) return;
    line.key(key);
    append_operands(out, list);
  };
  operands("operands", op.operands);
  operands("results", op.results);
  if (!op.arguments.empty()) {
    line.key("arguments");
    append_arguments(out, op.arguments);
  }
  line.text("phase", op.phase);
  line.text("origin", op.origin);
  if (!op.attributes.empty()) {
    line.key("attributes");
    out += op.attributes;
  }
}

template <class IdType, class Append>
void append_entries(std::string& out, std::string_view key, std::size_t count, Append append) {
  out += ",\n  \"" + std::string(key) + "\": [";
  for (std::size_t i = 0; i < count; ++i) {
    out += i == 0 ? "\n    " : ",\n    ";
    append(IdType(i));
  }
  out += count == 0 ? "]" : "\n  ]";
}

}  // namespace

std::string write_graph(const Graph& graph) {
  std::string out = "{\n  \"format\": \"lowtide-graph\",\n  \"version\": 1";
  if (!graph.name().empty()) {
    out += ",\n  \"name\": ";
    append_json_string(out, graph.name());
  }
  if (graph.tick() != TickUnit::none)
    out += ",\n  \"tick\": \"" + std::string(to_string(graph.tick())) + "\"";
  if (graph.resident().count() != 0)
    out += ",\n  \"resident_bytes\": " + std::to_string(graph.resident().count());
  append_entries<TensorId>(out, "tensors", graph.tensor_count(),
                           [&](TensorId id) { append_tensor(out, graph, id); });
  append_entries<OpId>(out, "ops", graph.op_count(), [&](OpId id) { append_op(out, graph, id); });
  out += ",\n  \"outputs\": ";
  append_long_list(out, graph.outputs());
  if (!std::is_sorted(graph.order().begin(), graph.order().end())) {
    out += ",\n  \"order\": ";
    append_long_list(out, graph.order());
  }
  out += "\n}\n";
  return out;
}

}  // namespace lowtide::io

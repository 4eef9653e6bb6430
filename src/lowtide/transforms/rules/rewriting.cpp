// Messages and checks that all rules share.
#include "lowtide/transforms/rules/rewriting.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lowtide/transforms/refuse.h"

namespace lowtide {

namespace {

void add_once(std::vector<TensorId>& list, TensorId tensor) {
  if (std::ranges::find(list, tensor) == list.end()) list.push_back(tensor);
}

constexpr std::array<std::string_view, 4> kProducts = {"aten.mm", "aten.addmm", "aten.bmm",
                                                       "aten.baddbmm"};
// Kinds whose kernels copy operands that are not contiguous; no price includes that copy.
constexpr std::array<std::string_view, 5> kCopying = {"convolution", "norm", "pool", "upsample",
                                                      "fft"};

// Whether both have their dimensions in the same order of strides, so that kernels give their
// results the same layout.
bool lies_alike(const Operand& a, const Operand& b) {
  for (std::size_t i = 0; i < a.shape.size(); ++i)
    for (std::size_t j = 0; j < a.shape.size(); ++j)
      if (a.shape[i] > 1 && a.shape[j] > 1 &&
          (a.strides[i] < a.strides[j]) != (b.strides[i] < b.strides[j]))
        return false;
  return true;
}

}  // namespace

bool multiplies_matrices(const Op& op) {
  return std::ranges::find(kProducts, op.kind) != kProducts.end();
}

void Rewriting::refuse_with(const std::string& words) const {
  refuse_transform("substitute: \"" + std::string(rule_.name) + "\": " + words);
}

bool Rewriting::is_anchor(OpId op) const {
  return std::ranges::find(rule_.anchors, graph_.op(op).kind) != rule_.anchors.end();
}

OpId Rewriting::only_op() const {
  const OpId op = ops_.front();
  if (ops_.size() != 1) refuse(op, "is not the only op in \"ops\"; the rule takes one op");
  if (!is_anchor(op)) refuse(op, "is of kind \"" + graph_.op(op).kind + "\"");
  return op;
}

const Operand& Rewriting::operand(OpId op, std::string_view argument) const {
  const auto& operands = graph_.op(op).operands;
  const auto found = std::ranges::find(operands, argument, &Operand::argument);
  if (found == operands.end() || found->strides.size() != found->shape.size())
    refuse(op, "has no operand \"" + std::string(argument) + "\" with a known layout");
  return *found;
}

const Operand& Rewriting::only_result(OpId op) const {
  const auto& results = graph_.op(op).results;
  if (results.size() != 1 || graph_.outputs(op).size() != 1 ||
      results.front().tensor != graph_.outputs(op).front())
    refuse(op, "does not make one tensor");
  const Operand& result = results.front();
  const auto reach = reach_of(result), bytes = element_bytes(result.dtype);
  if (!is_row_major(result) || !reach || !bytes ||
      *reach != graph_.bytes(result.tensor).count() / *bytes)
    refuse(op, "does not make its tensor row by row, or not all of it");
  return result;
}

std::vector<Reading> Rewriting::readings(TensorId tensor) const {
  if (graph_.is_output(tensor)) refuse(tensor, "is an output of the graph");
  std::vector<Reading> found;
  for (const OpId reader : graph_.consumers(tensor)) {
    const auto& operands = graph_.op(reader).operands;
    const std::size_t before = found.size();
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].tensor == tensor) found.push_back({reader, i});
    const auto changed = graph_.mutates(reader);
    if (std::ranges::find(changed, tensor) != changed.end())
      refuse(reader, "changes " + label(tensor));
    if (found.size() == before) refuse(reader, "does not say how it reads " + label(tensor));
  }
  return found;
}

Operand Rewriting::make_tensor(const std::string& name, std::vector<std::int64_t> shape,
                               const Operand& like) {
  const auto bytes = element_bytes(like.dtype);
  if (!bytes) refuse(like.tensor, "has elements of no known size");
  Tensor tensor{.name = name, .bytes = Bytes(0), .shape = shape, .dtype = like.dtype};
  std::int64_t all = *bytes;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(all, extent, &all))
      refuse(like.tensor, "would be copied into a tensor of 2^63 bytes or more");
  tensor.bytes = Bytes(all);
  made_.tensors.push_back(std::move(tensor));
  auto strides = row_major_strides(shape);
  return {.argument = {},
          .tensor = TensorId(graph_.tensor_count() + made_.tensors.size() - 1),
          .shape = std::move(shape),
          .strides = std::move(strides),
          .dtype = like.dtype};
}

void Rewriting::make_op(Op op, OpId like) {
  Replacement::Made made{.op = {}, .like = like, .inputs = {}, .outputs = {}, .in_place = {}};
  for (const Operand& operand : op.operands) add_once(made.inputs, operand.tensor);
  for (const Operand& result : op.results) add_once(made.outputs, result.tensor);
  made.op = std::move(op);
  made_.ops.push_back(std::move(made));
}

Operand Rewriting::make_cat(const std::string& name, const std::vector<Operand>& parts,
                            std::int64_t dim, OpId before) {
  std::vector<std::int64_t> shape = parts.front().shape;
  const auto at = static_cast<std::size_t>(dim);
  shape[at] = 0;
  Op cat;
  cat.name = name;
  cat.kind = "aten.cat";
  cat.phase = graph_.op(before).phase;
  cat.origin = graph_.op(before).origin;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (__builtin_add_overflow(shape[at], parts[i].shape[at], &shape[at]))
      refuse(before, "would read 2^63 rows or more");
    Operand& part = cat.operands.emplace_back(parts[i]);
    part.argument = "tensors";
    part.index = static_cast<std::int64_t>(i);
  }
  cat.arguments = {{"dim", {dim}}};
  const Operand result = make_tensor(name, std::move(shape), parts.front());
  cat.results = {result};
  make_op(std::move(cat), OpId());
  return result;
}

void Rewriting::reread(const Reading& reading, Operand now) {
  auto reader = std::ranges::find(made_.readers, reading.op, &Replacement::Reader::op);
  if (reader == made_.readers.end()) {
    made_.readers.push_back({reading.op, graph_.op(reading.op).operands});
    reader = made_.readers.end() - 1;
  }
  Operand& was = reader->operands[reading.operand];
  now.argument = was.argument;
  now.index = was.index;
  const Op& op = graph_.op(reading.op);
  if (!multiplies_matrices(op)) {
    const auto copies = [&](std::string_view word) { return op.kind.find(word) != op.kind.npos; };
    if (!lies_alike(was, now)) refuse(reading.op, "would make its result in another layout");
    if (now.strides != was.strides && std::ranges::any_of(kCopying, copies))
      refuse(reading.op, "would have to copy data that is not contiguous");
  }
  was = std::move(now);
}

void Rewriting::reread_all(const Operand& from, const Operand& to) {
  for (const Reading& reading : readings(from.tensor)) {
    const auto now = relaid(graph_.op(reading.op).operands[reading.operand], from, to);
    if (!now)
      refuse(reading.op, "reads " + label(from.tensor) +
                             " in a way that strides cannot express after the substitution");
    reread(reading, *now);
  }
}

}  // namespace lowtide

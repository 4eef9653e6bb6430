// Copies a graph's ops and tensors into slots that may become empty, and builds a graph of the
// slots that remain.
#include "lowtide/transforms/draft.h"

#include <algorithm>
#include <utility>

#include "lowtide/graph/builder.h"

namespace lowtide {

namespace {

template <class AnyId>
std::vector<AnyId> copied(std::span<const AnyId> ids) {
  return {ids.begin(), ids.end()};
}

template <class AnyId>
std::vector<AnyId> copied(std::span<const AnyId> ids, const IdVector<AnyId, AnyId>& as) {
  std::vector<AnyId> found;
  found.reserve(ids.size());
  for (const AnyId id : ids) found.push_back(as[id]);
  return found;
}

// The ids of the new graph, for its builder.
template <class AnyId>
std::vector<std::int64_t> dense(const std::vector<AnyId>& ids, const std::vector<AnyId>& places) {
  std::vector<std::int64_t> found;
  found.reserve(ids.size());
  for (const AnyId id : ids) found.push_back(static_cast<std::int64_t>(places[id.index()].index()));
  return found;
}

}  // namespace

void refuse_transform(std::string reason) { throw TransformRefused("", std::move(reason)); }

Draft::Draft(const Graph& graph)
    : order(copied(graph.order())),
      outputs(copied(graph.outputs())),
      name_(graph.name()),
      tick_(graph.tick()),
      resident_(graph.resident()),
      originals_(graph.op_count()) {
  ops_.reserve(graph.op_count());
  tensors_.reserve(graph.tensor_count());
  for (const OpId id : AllIds<OpId>(graph.op_count())) {
    const auto pairs = graph.in_place(id);
    ops_.emplace_back(DraftOp{.op = graph.op(id),
                              .inputs = copied(graph.inputs(id)),
                              .outputs = copied(graph.outputs(id)),
                              .mutates = copied(graph.mutates(id)),
                              .after = copied(graph.after(id)),
                              .in_place = {pairs.begin(), pairs.end()},
                              .parts = {},
                              .source = id,
                              .gone = std::nullopt});
  }
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count()))
    tensors_.emplace_back(graph.tensor(id));
}

Draft::Draft(const Graph& graph, const TransformedGraph& now)
    : order(copied(now.graph.order(), now.op_index)),
      outputs(copied(now.graph.outputs(), now.tensor_index)),
      name_(graph.name()),
      tick_(graph.tick()),
      resident_(graph.resident()),
      originals_(graph.op_count()) {
  const Graph& made = now.graph;
  ops_.reserve(now.ops.size());
  tensors_.reserve(now.tensors.size());
  for (const OpId id : now.ops) {
    DraftOp& op = ops_.emplace_back();
    if (!id.valid()) {
      op.gone = 0;
      continue;
    }
    op.op = made.op(id);
    for (auto* list : {&op.op.operands, &op.op.results})
      for (Operand& operand : *list) operand.tensor = now.tensor_index[operand.tensor];
    op.inputs = copied(made.inputs(id), now.tensor_index);
    op.outputs = copied(made.outputs(id), now.tensor_index);
    op.mutates = copied(made.mutates(id), now.tensor_index);
    op.after = copied(made.after(id), now.op_index);
    for (const InPlacePair& pair : made.in_place(id))
      op.in_place.push_back({now.tensor_index[pair.input], now.tensor_index[pair.output]});
    op.parts = now.parts[id];
    op.source = now.source[id];
  }
  for (const TensorId id : now.tensors) {
    tensors_.emplace_back();
    if (id.valid()) tensors_.back() = made.tensor(id);
  }
}

void Draft::demand(OpId id) const {
  if (!id.valid() || id.index() >= ops_.size())
    refuse_transform("there is no op " + std::to_string(id.index()) + "; there are " +
                     std::to_string(ops_.size()));
  if (const auto gone = op(id).gone)
    refuse_transform(label(id) + " was replaced by transform " + std::to_string(*gone));
}

void Draft::demand(TensorId id) const {
  if (!id.valid() || id.index() >= tensors_.size())
    refuse_transform("there is no tensor " + std::to_string(id.index()) + "; there are " +
                     std::to_string(tensors_.size()));
  if (!tensors_[id.index()])
    refuse_transform("tensor " + std::to_string(id.index()) +
                     " was removed by an earlier transform");
}

std::string Draft::label(OpId id) const {
  const std::string& name = op(id).op.name;
  return "op " + std::to_string(id.index()) + (name.empty() ? "" : " \"" + name + "\"");
}

std::string Draft::label(TensorId id) const {
  const std::string& name = tensor(id).name;
  return "tensor " + std::to_string(id.index()) + (name.empty() ? "" : " \"" + name + "\"");
}

OpId Draft::add(DraftOp op) {
  ops_.emplace_back(std::move(op));
  return OpId(ops_.size() - 1);
}

TensorId Draft::add(Tensor tensor) {
  tensors_.emplace_back(std::move(tensor));
  return TensorId(tensors_.size() - 1);
}

TransformedGraph Draft::finish() const {
  std::vector<OpId> ops(ops_.size()), op_index;
  std::vector<TensorId> tensors(tensors_.size()), tensor_index;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (ops_[i].gone) continue;
    ops[i] = OpId(op_index.size());
    op_index.emplace_back(i);
  }
  GraphBuilder builder;
  builder.reserve(op_index.size(), tensors_.size());
  builder.set_name(name_);
  builder.set_tick(tick_);
  builder.set_resident(resident_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i]) continue;
    tensors[i] = builder.add_tensor(*tensors_[i]);
    tensor_index.emplace_back(i);
  }
  IdVector<OpId, std::vector<PartOf>> parts;
  IdVector<OpId, OpId> source;
  for (const OpId id : op_index) {
    const DraftOp& from = op(id);
    OpLinks links{.inputs = dense(from.inputs, tensors),
                  .outputs = dense(from.outputs, tensors),
                  .after = dense(from.after, ops),
                  .mutates = dense(from.mutates, tensors)};
    for (const InPlacePair& pair : from.in_place)
      links.in_place.push_back({static_cast<std::int64_t>(tensors[pair.input.index()].index()),
                                static_cast<std::int64_t>(tensors[pair.output.index()].index())});
    Op made = from.op;
    for (auto* list : {&made.operands, &made.results})
      for (Operand& operand : *list) operand.tensor = tensors[operand.tensor.index()];
    builder.add_op(std::move(made), links);
    parts.push_back(from.parts);
    source.push_back(from.source);
  }
  builder.set_outputs(dense(outputs, tensors));
  builder.set_order(dense(order, ops));
  return {.graph = builder.build(),
          .op_index = IdVector<OpId, OpId>(std::move(op_index)),
          .tensor_index = IdVector<TensorId, TensorId>(std::move(tensor_index)),
          .ops = std::move(ops),
          .tensors = std::move(tensors),
          .parts = std::move(parts),
          .source = std::move(source)};
}

}  // namespace lowtide

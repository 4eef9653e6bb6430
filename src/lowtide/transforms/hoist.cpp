// Hoist: run the backward within the forward.
//
// Between forward and backward stands a barrier: the caller receives the loss, and returns the
// gradient of the loss (the tangent), one number. Every gradient is proportional to the tangent. So
// the backward can run before the barrier, with an assumed tangent; the returned gradients are
// scaled by the ratio of the two. Then one split can contain parts of the forward and the backward
// parts that read them.
//
// Loses: if the caller runs no backward, the time of the hoisted backward is wasted.
#include <algorithm>
#include <utility>
#include <vector>

#include "lowtide/transforms/draws.h"
#include "lowtide/transforms/rules.h"

namespace lowtide {

namespace {

constexpr std::string_view kTangentKind = "lowtide.tangent";

// The number of elements of the tensor; nullopt if its shape is unknown.
std::optional<std::int64_t> elements(const Tensor& tensor) {
  if (tensor.shape.empty() && tensor.dtype.empty()) return std::nullopt;
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.shape)
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  return count;
}

OpId barrier_of(const Draft& draft, const TransformedGraph& now, TensorId tangent) {
  draft.demand(tangent);
  const OpId maker = now.graph.producer(now.tensors[tangent.index()]);
  const std::string label = draft.label(tangent);
  if (!maker.valid() || !now.graph.is_barrier(maker))
    refuse_transform("hoist: " + label + " is made by no barrier");
  if (now.graph.outputs(maker).size() != 1)
    refuse_transform("hoist: the barrier makes " + std::to_string(now.graph.outputs(maker).size()) +
                     " tensors, not one: the caller begins the backward in more than one place");
  if (elements(draft.tensor(tangent)) != 1)
    refuse_transform("hoist: " + label + " is not known to be one element");
  return maker;
}

// The ops that depend on the barrier, in the given order.
std::vector<OpId> ops_behind(const Graph& graph, OpId barrier) {
  std::vector<std::uint8_t> reached(graph.op_count(), 0);
  std::vector<OpId> found;
  reached[barrier.index()] = 1;
  for (const OpId op : graph.order()) {
    for (const OpId before : graph.predecessors(op))
      if (reached[before.index()] != 0) reached[op.index()] = 1;
    if (reached[op.index()] != 0 && op != barrier) found.push_back(op);
  }
  return found;
}

}  // namespace

void do_transform(Draft& draft, const TransformedGraph& now, const Hoist& hoist, std::size_t) {
  const Graph& graph = now.graph;
  const OpId barrier = barrier_of(draft, now, hoist.tangent);
  const OpId barrier_index = now.op_index[barrier];
  std::vector<TensorId> gradients;  // outputs of the graph, as file indices
  std::vector<OpId> effects;
  for (const OpId op : ops_behind(graph, barrier)) {
    const OpId index = now.op_index[op];
    if (draws(graph.op(op)))
      refuse_transform("hoist: " + draft.label(index) +
                       " draws random numbers behind the barrier; before it, the caller would see "
                       "another state of the generator");
    std::erase(draft.op(index).after, barrier_index);
    for (const TensorId made : graph.outputs(op))
      if (graph.is_output(made)) gradients.push_back(now.tensor_index[made]);
    if (graph.outputs(op).empty() || !graph.mutates(op).empty()) effects.push_back(index);
  }

  Ticks scaling;
  Bytes workspace = draft.op(barrier_index).op.workspace;
  for (const TensorPrice& price : hoist.joins) {
    draft.demand(price.of);
    if (std::ranges::find(gradients, price.of) == gradients.end())
      refuse_transform(
          "hoist: " + draft.label(price.of) +
          " has a price in \"joins\", but is not a graph output made behind the barrier");
    try {
      scaling = checked_add(scaling, price.time);
    } catch (const OverflowError&) {
      refuse_transform("hoist: the times of \"joins\" add up to 2^63 or more");
    }
    workspace = std::max(workspace, price.workspace);
  }

  DraftOp tangent{};
  tangent.op.name = "tangent";
  tangent.op.kind = kTangentKind;
  tangent.op.phase = "backward";
  tangent.op.results = std::exchange(draft.op(barrier_index).op.results, {});
  tangent.outputs = {hoist.tangent};
  std::ranges::replace(draft.order, barrier_index, draft.add(std::move(tangent)));
  draft.order.push_back(barrier_index);

  DraftOp& last = draft.op(barrier_index);
  last.outputs.clear();
  for (const TensorId gradient : gradients)
    if (std::ranges::find(last.inputs, gradient) == last.inputs.end())
      last.inputs.push_back(gradient);
  last.after.insert(last.after.end(), effects.begin(), effects.end());
  last.op.workspace = workspace;
  try {
    last.op.time = checked_add(last.op.time, scaling);
  } catch (const OverflowError&) {
    refuse_transform("hoist: the times of \"joins\" add up to 2^63 or more");
  }
}

}  // namespace lowtide

// A graph that transforms are at work on, in the file's indices: each edits it, and `finish` makes
// the graph of what stands there. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/transforms/refuse.h"
#include "lowtide/transforms/transform.h"
#include "lowtide/transforms/transformed_graph.h"

namespace lowtide {

// All ids are the file's; those in operands and results too.
struct DraftOp {
  Op op;
  std::vector<TensorId> inputs, outputs, mutates;
  std::vector<OpId> after;
  std::vector<InPlacePair> in_place;
  std::vector<PartOf> parts;
  OpId source;                      // as of TransformedGraph
  std::optional<std::size_t> gone;  // the transform that put others in its place
};

class Draft {
 public:
  explicit Draft(const Graph& graph);
  // Of what transforms have made of it. What of that is gone says neither its name nor what put
  // others in its place.
  Draft(const Graph& graph, const TransformedGraph& now);

  std::size_t op_count() const { return ops_.size(); }  // with those that are gone
  // Those that are gone still stand there, but nothing may lead to them.
  const DraftOp& op(OpId id) const { return ops_[id.index()]; }
  DraftOp& op(OpId id) { return ops_[id.index()]; }
  const Tensor& tensor(TensorId id) const { return *tensors_[id.index()]; }
  // TransformRefused for an index that there is not, or not any more.
  void demand(OpId id) const;
  void demand(TensorId id) const;
  // "op 3 \"mm_3\"", for messages.
  std::string label(OpId id) const;
  std::string label(TensorId id) const;

  // Ops that transforms have made, gone or not; more than kMostMade are refused by whoever makes
  // them, so that a small file cannot ask for a huge graph.
  static constexpr std::size_t kMostMade = std::size_t{1} << 20;
  std::size_t made() const { return ops_.size() - originals_; }

  // The next index; whoever adds an op gives it its place in the order.
  OpId add(DraftOp op);
  TensorId add(Tensor tensor);
  void remove(OpId id, std::size_t transform) { ops_[id.index()].gone = transform; }
  void remove(TensorId id) { tensors_[id.index()].reset(); }

  std::vector<OpId> order;
  std::vector<TensorId> outputs;

  TransformedGraph finish() const;

 private:
  std::string name_;
  TickUnit tick_;
  Bytes resident_;
  std::size_t originals_;
  std::vector<DraftOp> ops_;
  std::vector<std::optional<Tensor>> tensors_;
};

}  // namespace lowtide

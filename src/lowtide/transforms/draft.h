// A mutable graph in file indices, which transforms edit. `finish` builds the transformed graph.
// Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/transforms/refuse.h"
#include "lowtide/transforms/transform.h"
#include "lowtide/transforms/transformed_graph.h"

namespace lowtide {

// All ids are file indices, also those in operands and results.
struct DraftOp {
  Op op;
  std::vector<TensorId> inputs, outputs, mutates;
  std::vector<OpId> after;
  std::vector<InPlacePair> in_place;
  std::vector<PartOf> parts;
  OpId source;                      // see TransformedGraph
  std::optional<std::size_t> gone;  // the transform that removed it
};

class Draft {
 public:
  explicit Draft(const Graph& graph);
  // A draft of a transformed graph. Its removed ops have neither a name nor the transform that
  // removed them.
  Draft(const Graph& graph, const TransformedGraph& now);

  std::size_t op_count() const { return ops_.size(); }  // removed ops included
  // A removed op keeps its entry, but no other op may refer to it.
  const DraftOp& op(OpId id) const { return ops_[id.index()]; }
  DraftOp& op(OpId id) { return ops_[id.index()]; }
  const Tensor& tensor(TensorId id) const { return *tensors_[id.index()]; }
  // Throws TransformRefused for an index that does not exist or was removed.
  void demand(OpId id) const;
  void demand(TensorId id) const;
  // "op 3 \"mm_3\"", for messages.
  std::string label(OpId id) const;
  std::string label(TensorId id) const;

  // The number of ops that transforms have made, removed ones included. Transforms refuse to make
  // more than kMostMade, so that a small file cannot produce a huge graph.
  static constexpr std::size_t kMostMade = std::size_t{1} << 20;
  std::size_t made() const { return ops_.size() - originals_; }

  // Returns the next index. The caller must insert an added op into `order`.
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

// Training steps of small networks with kinds and operands, as a capture gives them, so that axes
// can be followed through them; and splits of graphs, with prices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/base/random.h"
#include "lowtide/graph/builder.h"
#include "lowtide/transforms/apply.h"

namespace lowtide {

// Ops and tensors with all that they have in files, one after the other. Tensors are contiguous.
class Network {
 public:
  using Extents = std::vector<std::int64_t>;
  using Index = std::int64_t;

  Index tensor(Extents shape, const std::string& dtype = "f32", Role role = Role::activation);
  // A tensor as an op sees it: whole, with two dimensions exchanged, or so many rows of it.
  Operand whole(const std::string& argument, Index tensor) const;
  Operand transposed(const std::string& argument, Index tensor) const;
  Operand rows(const std::string& argument, Index tensor, Index first, Index count) const;

  Op& op(const std::string& kind, const std::vector<Operand>& operands,
         const std::vector<Index>& results, std::vector<Argument> arguments = {});
  // Of the latest op:
  Network& in_place(Index input, Index output);
  Network& after(Index op);
  Network& mutates(Index tensor);  // which it reads
  Op& latest_op() { return ops_.back(); }
  Index latest() const { return static_cast<Index>(ops_.size()) - 1; }
  // Of the graph:
  void keep(Index tensor) { kept_.push_back(tensor); }
  Tensor& at(Index tensor) { return tensors_[static_cast<std::size_t>(tensor)]; }
  Graph graph() const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Op> ops_;
  std::vector<OpLinks> links_;
  std::vector<Index> kept_;
};

// A classifier of layers x -> relu(x w), and the whole step of it: forward, loss, barrier,
// backward. Times and workspaces come from the ops' sizes.
struct Classifier {
  std::int64_t batch = 8;
  std::vector<std::int64_t> widths{4, 6, 10};  // of the input, between layers, of the classes
  std::string dtype = "f32";                   // of parameters and activations
  bool barrier = true;
  bool dropout = false;  // after the first layer
  bool in_place = true;
  bool shifted = false;  // each row but the last against the label of the next

  static Classifier random(Random& random);
};
Graph step_of(const Classifier& classifier);

// Three products of one tensor, the last of which is added to what is there: with substitutions it
// is faster.
Graph three_products();

// The price of a part with `count` of `extent` slices of an op, and of joining a tensor: of test
// graphs, whatever they are.
OpPrice part_price(const Op& op, OpId index, std::int64_t count, std::int64_t extent);
TensorPrice join_price(Bytes bytes, TensorId index);

// The split along these axes of as many of the `among` ops (of the made graph; empty: all) as carry
// them and make a region that is convex, with all its prices; in the file's indices.
Split split_along(const TransformedGraph& now, const std::vector<SplitAxis>& axes,
                  std::int64_t parts, const std::vector<OpId>& among = {});

// The hoist of the graph's only barrier.
Hoist hoist_of(const Graph& graph);

}  // namespace lowtide

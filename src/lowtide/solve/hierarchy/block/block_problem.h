// A block as a separate problem: its ops, with one op between its halves that stands for the rest
// of the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/hierarchy/block/block_option.h"

namespace lowtide {
struct Plan;
struct Timeline;
}  // namespace lowtide

namespace lowtide::solve::hierarchy {

// The graph of a block has the block's name (label), and
//
// - op i is the i-th op of the block, in the given order of `ops`. If there is a backward half,
//   `rest` follows, a barrier between the   halves. It reads all outputs of the forward half, and
//   makes the tensors that ops outside make for   the backward half in their own backward;
// - other tensors read from outside are inputs that stay;
// - its outputs are the outputs of the network, and the outputs of the backward half;
// - an op that may be recomputed only until another op has run is not recomputable.
class BlockProblem {
 public:
  // `ops`: all ops of the block, in any order. `reruns`: for each op of the network, whether it may
  // be recomputed at any time.
  BlockProblem(const Graph& network, const Partition& partition, BlockId id,
               std::span<const OpId> ops, std::span<const std::uint8_t> reruns);
  // The whole network, which must outlive this object, as a block without a backward half. Its
  // graph is that of the network.
  BlockProblem(const Graph& network, const Partition& partition);

  const Graph& graph() const { return made_ ? *made_ : network_; }
  std::size_t op_count() const { return forward_.size(); }  // without `rest`
  OpId rest() const { return rest_; }  // invalid without a backward half, and for the network
  bool has_backward() const { return rest_.valid(); }
  bool is_forward(OpId op) const { return forward_[op.index()] != 0; }
  // The op and the tensor of the network for those of the graph, except `rest` and what it makes.
  OpId network_op(OpId op) const { return made_ ? ops_[op.index()] : op; }
  TensorId network_tensor(TensorId id) const { return made_ ? tensors_[id.index()] : id; }

  // All ops of a half in the given order.
  std::vector<OpId> in_order(bool forward) const;
  // The option that computes everything once and saves all tensors, and the one that saves as
  // little as possible. The second is missing if it equals the first.
  BlockOption save_all() const;
  std::optional<BlockOption> recompute_all() const;

  // The cost of these schedules, by `simulate`. Throws InputError (place: "forward" or "backward")
  // for ops that do not exist, for a forward half with backward ops, and for a schedule that breaks
  // a rule.
  BlockOption price(std::vector<OpId> forward, std::vector<OpId> backward) const;
  // The same for a sequence of the graph that computes `rest` between the halves.
  BlockOption price(std::span<const OpId> sequence) const;
  // The least bytes in use while this op runs, in every option.
  Bytes least_peak(OpId op) const;

  // The problem for solvers of graphs, in the given order. Its graph is this one; if the saved
  // bytes are limited too, one with more workspace for `rest`, which is put into `limited`. A plan
  // within its budget is an option within the block's budget, except that the border is counted
  // only while it is in use.
  Problem problem(const BlockBudget& budget, std::optional<Graph>& limited) const;

 private:
  const Graph& network_;
  std::vector<OpId> ops_;
  std::vector<std::uint8_t> forward_;  // of each op but `rest`
  std::vector<TensorId> tensors_;
  OpId rest_;
  // Of the inputs, of the tensors that `rest` reads, and of those that it makes.
  Bytes inputs_, given_, brought_;
  std::optional<Graph> made_;

  class Builder;

  // The computations of an option: forward half, `rest`, backward half. Throws InputError as
  // `price`.
  std::vector<OpId> sequence_of(const BlockOption& option) const;
  // Sets the saved bytes, both peaks, and the needed tensors of the border, from a simulation of
  // both halves.
  void measure(const Plan& plan, const Timeline& timeline, BlockOption& option) const;
};

}  // namespace lowtide::solve::hierarchy

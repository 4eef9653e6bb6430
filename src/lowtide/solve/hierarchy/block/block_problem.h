// A block as a problem of its own: its ops, with the rest of the network as a single op between its
// halves.
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

// In the graph of a block, which is called as the partition calls the block (label)
//
// - op i is the block's i-th op, as given; behind them comes `rest`, a barrier, if there is a
//   backward half. It reads all that the forward half gives, and makes what ops outside make for
//   the backward half in their own backward. It stands between the halves in the given order;
// - what else is read from outside is an input that never leaves;
// - outputs are those of the network, and what the backward half gives;
// - an op that may run again only until some other op has run may not run again at all.
class BlockProblem {
 public:
  // `ops`: all ops of the block, in any order. `reruns`: of each op of the network, whether it may
  // run again at any time.
  BlockProblem(const Graph& network, const Partition& partition, BlockId id,
               std::span<const OpId> ops, std::span<const std::uint8_t> reruns);
  // The whole network, which must outlive it, as a block whose forward half is all there is: its
  // graph is the network's.
  BlockProblem(const Graph& network, const Partition& partition);

  const Graph& graph() const { return made_ ? *made_ : network_; }
  std::size_t op_count() const { return forward_.size(); }  // without `rest`
  OpId rest() const { return rest_; }  // invalid without a backward half, and for the network
  bool has_backward() const { return rest_.valid(); }
  bool is_forward(OpId op) const { return forward_[op.index()] != 0; }
  // Of all ops and tensors of the graph but `rest`: which they are in the network.
  OpId network_op(OpId op) const { return made_ ? ops_[op.index()] : op; }
  TensorId network_tensor(TensorId id) const { return made_ ? tensors_[id.index()] : id; }

  // All ops of a half in the given order.
  std::vector<OpId> in_order(bool forward) const;
  // Everything once, all saved; and nothing saved, as far as that may be. The latter is missing
  // where it is the former.
  BlockOption save_all() const;
  std::optional<BlockOption> recompute_all() const;

  // What these schedules take, by `simulate`. InputError (place: "forward" or "backward") for ops
  // that there are not, for a forward half with backward ops, and for a schedule that breaks a
  // rule.
  BlockOption price(std::vector<OpId> forward, std::vector<OpId> backward) const;
  // The same for a sequence of the graph that computes `rest` where the one half ends.
  BlockOption price(std::span<const OpId> sequence) const;
  // What every option has in use at least while this op runs.
  Bytes least_peak(OpId op) const;

  // The problem for solvers of graphs: in the given order, on this graph or, where the saved bytes
  // are limited too, on one with more workspace for `rest`, which is put into `limited`. A plan
  // within its budget is an option within the block's, but for what of the border is in use less
  // than throughout.
  Problem problem(const BlockBudget& budget, std::optional<Graph>& limited) const;

 private:
  const Graph& network_;
  std::vector<OpId> ops_;
  std::vector<std::uint8_t> forward_;  // of each op but `rest`
  std::vector<TensorId> tensors_;
  OpId rest_;
  Bytes inputs_, given_, brought_;  // of the inputs, of what `rest` reads and of what it makes
  std::optional<Graph> made_;

  class Builder;

  // The forward half, `rest` if there is a backward half, and that. InputError as of `price`.
  std::vector<OpId> sequence_of(const BlockOption& option) const;
  // Sets what is held between the halves, both peaks and what is needed of the border, of a run of
  // both halves.
  void measure(const Plan& plan, const Timeline& timeline, BlockOption& option) const;
};

}  // namespace lowtide::solve::hierarchy

// A level as a program sees it: what its nodes read and make, and what they take while they run.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/graph/graph.h"
#include "lowtide/solve/hierarchy/block/block_problem.h"
#include "lowtide/solve/hierarchy/block/level.h"

namespace lowtide::solve::hierarchy {

inline constexpr std::size_t kNoNode = std::numeric_limits<std::size_t>::max();

// A tensor that one node makes and that another reads, or that is given to what is around the
// block. What lies inside one node, or between the halves of a child, is not among these; nor are
// inputs of the graph and what `rest` makes, which cost the block nothing.
struct LevelData {
  TensorId id;
  Bytes bytes;
  std::size_t maker = 0;
  bool kept = false;   // until the end
  bool given = false;  // to `rest`
};

// One way to run a node.
struct NodeRun {
  std::size_t option = 0;  // of the child
  // A forward half of which nothing is saved for the backward one, whatever its option: the paper's
  // fast-forward. True of what has nothing to save.
  bool passes = true;
  Bytes saved;  // between the halves of the child with this option, data apart
  Ticks time;
  std::vector<std::size_t> reads;  // numbers of data that must be there, ascending

  // A moment of the run: bytes beyond what is in use before it if nothing that is read ends inside
  // it, and the data that the run does not need any more, or made and needs no more.
  struct Moment {
    Bytes bytes;
    std::vector<std::size_t> ended, unneeded;
  };
  // Those of which no other is at least as large with no more that has ended. One at least.
  std::vector<Moment> moments;
  Bytes peak() const;  // the largest
};

class LevelView {
 public:
  // Both must outlive it.
  LevelView(const BlockProblem& block, const Level& level);

  std::size_t node_count() const { return level_.nodes.size(); }
  std::size_t rest() const { return rest_; }  // kNoNode if there is none
  const std::vector<LevelData>& data() const { return data_; }
  // Of a forward half: those that pass, then one for each option that saves something.
  const std::vector<NodeRun>& runs(std::size_t node) const { return runs_[node]; }
  const std::vector<std::size_t>& makes(std::size_t node) const { return makes_[node]; }  // data
  bool recomputable(std::size_t node) const { return recomputable_[node] != 0; }
  bool is_forward(std::size_t node) const;
  // The other half of the child; kNoNode if there is none.
  std::size_t partner(std::size_t node) const { return partner_[node]; }
  // The run that these steps are. A forward half saves if the next backward half of its child is
  // run with its option. kNoNode as run where the level has left out such a run.
  struct Chosen {
    std::size_t node, run;
  };
  std::vector<Chosen> runs_of(std::span<const LevelStep> steps) const;
  // The steps that compute this sequence of ops; empty if no steps of the level do.
  std::vector<LevelStep> steps_of(std::span<const OpId> sequence) const;

 private:
  std::vector<OpId> ops_of(std::size_t node, std::size_t option) const;
  void find_data();
  void add_runs(std::size_t node);
  NodeRun run_of(std::size_t node, std::size_t option, std::span<const TensorId> saved) const;
  std::vector<TensorId> saved_by(std::size_t forward, std::size_t backward,
                                 std::size_t option) const;

  const BlockProblem& block_;
  const Graph& graph_;
  const Level& level_;
  std::size_t rest_ = kNoNode;
  std::vector<LevelData> data_;
  std::vector<std::size_t> data_of_;  // of each tensor; kNoNode for those that are none
  std::vector<std::vector<NodeRun>> runs_;
  std::vector<std::vector<std::size_t>> makes_;
  std::vector<std::uint8_t> recomputable_;
  std::vector<std::size_t> partner_;
};

// The bytes in use at each op of a run: of what there is `before` it and of what it makes itself,
// as far as `counted`, with workspaces. A tensor goes after its last reader unless it is `kept`;
// an op that makes one again replaces it. Ops write in place where what they read ends.
std::vector<Bytes> bytes_along(const Graph& graph, std::span<const OpId> ops,
                               std::span<const TensorId> before,
                               const std::function<bool(TensorId)>& counted,
                               const std::function<bool(TensorId)>& kept);

}  // namespace lowtide::solve::hierarchy

// A level for a program: the data that its nodes read and make, and the memory of their runs.
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

// A tensor that one node makes and another node or the surroundings read. Tensors inside one node,
// or between the halves of a child, are no data. Nor are graph inputs and tensors that `rest`
// makes, which cost the block nothing.
struct LevelData {
  TensorId id;
  Bytes bytes;
  std::size_t maker = 0;
  bool kept = false;   // to the end
  bool given = false;  // read by `rest`
};

// One way to run a node.
struct NodeRun {
  std::size_t option = 0;  // of the child
  // A forward half whose tensors are not saved for the backward half, whatever its option: the
  // paper's fast-forward. Also true if there is nothing to save.
  bool passes = true;
  Bytes saved;  // between the halves of the child with this option, without data
  Ticks time;
  std::vector<std::size_t> reads;  // indices of the data that must exist, ascending

  // A moment of the run. bytes: in use beyond those before the run, if no tensor that it reads ends
  // inside it. ended: data that the run no longer needs. unneeded: data that it made and no longer
  // needs.
  struct Moment {
    Bytes bytes;
    std::vector<std::size_t> ended, unneeded;
  };
  // The moments that no other moment dominates (as many bytes, and no more ended data). At least
  // one.
  std::vector<Moment> moments;
  Bytes peak() const;  // the largest of `moments`
};

class LevelView {
 public:
  // Both must outlive this object.
  LevelView(const BlockProblem& block, const Level& level);

  std::size_t node_count() const { return level_.nodes.size(); }
  std::size_t rest() const { return rest_; }  // kNoNode if there is none
  const std::vector<LevelData>& data() const { return data_; }
  // For a forward half: the runs that pass, then one for each option that saves tensors.
  const std::vector<NodeRun>& runs(std::size_t node) const { return runs_[node]; }
  const std::vector<std::size_t>& makes(std::size_t node) const { return makes_[node]; }  // data
  bool recomputable(std::size_t node) const { return recomputable_[node] != 0; }
  bool is_forward(std::size_t node) const;
  // The other half of the child; kNoNode if there is none.
  std::size_t partner(std::size_t node) const { return partner_[node]; }
  // The runs of these steps. A forward half saves tensors if the next backward half of its child
  // runs with its option. `run` is kNoNode if the level has no such run.
  struct Chosen {
    std::size_t node, run;
  };
  std::vector<Chosen> runs_of(std::span<const LevelStep> steps) const;
  // The steps that compute this sequence of ops; empty if there are none.
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
  std::vector<std::size_t> data_of_;  // by tensor; kNoNode if it is no data
  std::vector<std::vector<NodeRun>> runs_;
  std::vector<std::vector<std::size_t>> makes_;
  std::vector<std::uint8_t> recomputable_;
  std::vector<std::size_t> partner_;
};

// The bytes in use at each op of a run, with workspaces: the tensors `before` it and those that it
// makes, as far as `counted`. A tensor is freed after its last reader unless it is `kept`; an op
// that makes it again replaces it. Ops run in place if an input ends.
std::vector<Bytes> bytes_along(const Graph& graph, std::span<const OpId> ops,
                               std::span<const TensorId> before,
                               const std::function<bool(TensorId)>& counted,
                               const std::function<bool(TensorId)>& kept);

}  // namespace lowtide::solve::hierarchy

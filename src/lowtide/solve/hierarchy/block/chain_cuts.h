// Where the forward of a level is cut into the stages of a chain, and which stage runs each
// backward node. Private to chain views; see chain_cuts.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "lowtide/solve/hierarchy/block/level_view.h"

namespace lowtide::solve::hierarchy {

class ChainCuts {
 public:
  // All must outlive it. Neighbours are joined until there are no more stages than so many.
  ChainCuts(const BlockProblem& block, const Level& level, const LevelView& view,
            std::size_t most_stages);

  // Why there is no chain; empty if there is one.
  const std::string& reason() const { return reason_; }

 protected:
  static constexpr std::size_t kNone = kNoNode;

  // What a barrier makes counts as made by the backward, which it begins.
  bool by_forward(std::size_t d) const {
    const LevelData& data = view_.data()[d];
    return view_.is_forward(data.maker) && !graph_.is_barrier(graph_.producer(data.id));
  }
  std::size_t stage_count() const { return cuts_.size() + 1; }
  std::size_t stage_at(std::size_t place) const {  // of a forward node
    return static_cast<std::size_t>(std::ranges::lower_bound(cuts_, place) - cuts_.begin());
  }
  // Of data: the stage of the last forward node that reads them, or else of their maker.
  std::size_t last_forward_stage(std::size_t d) const { return stage_at(last_forward_[d]); }
  std::vector<OpId> ops_of(std::size_t node) const;

  const BlockProblem& block_;
  const Graph& graph_;
  const Level& level_;
  const LevelView& view_;
  std::vector<std::size_t> forward_, backward_;  // nodes
  std::vector<std::size_t> stage_;               // of each node
  std::vector<std::size_t> node_of_;             // of each op
  std::vector<std::vector<std::size_t>> reads_;  // data, of each node

 private:
  void find_readers();
  void find_cuts();
  void join(std::size_t most_stages);
  std::size_t last_reading(TensorId input) const;
  bool find_stages();

  std::string reason_;
  std::vector<std::size_t> cuts_;          // places of forward nodes that end a stage
  std::vector<std::size_t> place_;         // of each forward node
  std::vector<std::size_t> last_forward_;  // of data: the place of the last forward reader
};

}  // namespace lowtide::solve::hierarchy

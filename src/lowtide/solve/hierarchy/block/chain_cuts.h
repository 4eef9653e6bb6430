// Divides the forward of a level into the stages of a chain, and assigns each backward node to a
// stage. Private to chain views; see chain_cuts.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "lowtide/solve/hierarchy/block/level_view.h"

namespace lowtide::solve::hierarchy {

class ChainCuts {
 public:
  // All arguments must outlive this object. Neighbouring stages are joined until there are at most
  // `most_stages`.
  ChainCuts(const BlockProblem& block, const Level& level, const LevelView& view,
            std::size_t most_stages);

  // The reason why there is no chain; empty if there is one.
  const std::string& reason() const { return reason_; }

 protected:
  static constexpr std::size_t kNone = kNoNode;

  // Data of a barrier count as made by the backward, which begins with the barrier.
  bool by_forward(std::size_t d) const {
    const LevelData& data = view_.data()[d];
    return view_.is_forward(data.maker) && !graph_.is_barrier(graph_.producer(data.id));
  }
  std::size_t stage_count() const { return cuts_.size() + 1; }
  std::size_t stage_at(std::size_t place) const {  // the stage of a forward node
    return static_cast<std::size_t>(std::ranges::lower_bound(cuts_, place) - cuts_.begin());
  }
  // The stage of the last forward node that reads the data; of their producer, if none does.
  std::size_t last_forward_stage(std::size_t d) const { return stage_at(last_forward_[d]); }
  std::vector<OpId> ops_of(std::size_t node) const;

  const BlockProblem& block_;
  const Graph& graph_;
  const Level& level_;
  const LevelView& view_;
  std::vector<std::size_t> forward_, backward_;  // nodes
  std::vector<std::size_t> stage_;               // by node
  std::vector<std::size_t> node_of_;             // by op
  std::vector<std::vector<std::size_t>> reads_;  // by node: data

 private:
  void find_readers();
  void find_cuts();
  void join(std::size_t most_stages);
  std::size_t last_reading(TensorId input) const;
  bool find_stages();

  std::string reason_;
  std::vector<std::size_t> cuts_;          // positions of the forward nodes that end a stage
  std::vector<std::size_t> place_;         // by forward node
  std::vector<std::size_t> last_forward_;  // by data: position of the last forward reader
};

}  // namespace lowtide::solve::hierarchy

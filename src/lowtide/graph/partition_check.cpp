// A partition is valid if its order is topological, and each half is a range of it that the parts
// of the half fill one after the other: no path between two ops of a range leaves the range.
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/graph/partition.h"

namespace lowtide {

namespace {

class Check {
 public:
  Check(const Graph& graph, const Partition& partition)
      : graph_(graph), partition_(partition), place_(graph.op_count(), kNowhere) {}

  void run() {
    require(partition_.phases.of.size() == graph_.op_count() &&
                partition_.phases.layer.size() == graph_.op_count(),
            "ops", "the phases are those of another graph");
    require(partition_.blocks.size() > 0, "blocks", "there is no root");
    place_ops();
    order();
    for (const BlockId id : partition_.blocks.ids()) {
      const Block& block = partition_.blocks[id];
      const bool is_root = id == Partition::root();
      const bool knows = is_root ? !block.parent.valid()
                                 : block.parent.valid() && block.parent.index() < id.index();
      require(knows, label(partition_, id), "its parent must be a block before it");
      check_half(id, block.forward, Phase::forward);
      check_half(id, block.backward, Phase::backward);
      require(block.op_count() > 0 || is_root, label(partition_, id), "it has no ops");
    }
    const Block& root = partition_.blocks[Partition::root()];
    require(root.forward.first == 0 && root.forward.last == root.backward.first &&
                root.backward.last == graph_.op_count(),
            label(partition_, Partition::root()), "it does not hold all ops");
    require_used();
  }

 private:
  static constexpr std::size_t kNowhere = SIZE_MAX;

  static void require(bool holds, const std::string& place, const char* reason) {
    if (!holds) throw InputError(place, reason);
  }

  void place_ops() {
    for (std::size_t i = 0; i < partition_.order.size(); ++i) {
      const OpId op = partition_.order[i];
      require(op.valid() && op.index() < graph_.op_count(), "order",
              "it lists an op that does not exist");
      require(place_[op.index()] == kNowhere, graph_.label(op), "it is in two places");
      place_[op.index()] = i;
    }
    for (std::size_t i = 0; i < place_.size(); ++i)
      require(place_[i] != kNowhere, graph_.label(OpId(i)), "it is in no block");
  }

  void order() const {
    for (const OpId op : partition_.order)
      for (const OpId before : graph_.predecessors(op))
        if (place_[before.index()] > place_[op.index()])
          throw InputError(graph_.label(op),
                           "it comes before " + graph_.label(before) + ", on which it depends");
  }

  void check_half(BlockId id, const Half& half, Phase phase) {
    const std::string place = label(partition_, id);
    require(half.first <= half.last && half.last <= partition_.order.size(), place,
            "its ops are no range of the order");
    std::size_t next = half.first;
    for (const BlockPart& part : half.parts) {
      require(part.op.valid() != part.block.valid(), place, "a part is either an op or a block");
      if (part.op.valid()) {
        require(next < half.last && partition_.order[next] == part.op, place,
                "its parts are not its ops, one after the other");
        require(partition_.phases.of[part.op] == phase, graph_.label(part.op),
                "it is in a half of another phase");
        ++next;
        continue;
      }
      require(part.block.index() < partition_.blocks.size(), place,
              "a child is a block that does not exist");
      const Block& inner = partition_.blocks[part.block];
      const Half& inside = phase == Phase::forward ? inner.forward : inner.backward;
      require(inner.parent == id, label(partition_, part.block), "it is a part of another block");
      require(inside.first == next && !inside.empty(), place,
              "its parts are not its ops, one after the other");
      next = inside.last;
      used_.emplace_back(part.block, phase);
    }
    require(next == half.last, place, "its parts are not its ops, one after the other");
  }

  // Checks that the halves of a block are parts of its parent, each once.
  void require_used() const {
    std::vector<std::array<std::size_t, 2>> uses(partition_.blocks.size(), {0, 0});
    for (const auto& [id, phase] : used_) ++uses[id.index()][phase == Phase::forward ? 0 : 1];
    for (std::size_t i = 1; i < uses.size(); ++i) {
      const Block& block = partition_.blocks[BlockId(i)];
      const bool once = uses[i][0] == (block.forward.empty() ? 0 : 1) &&
                        uses[i][1] == (block.backward.empty() ? 0 : 1);
      require(once, label(partition_, BlockId(i)), "its halves are not each in one place");
    }
  }

  const Graph& graph_;
  const Partition& partition_;
  std::vector<std::size_t> place_;
  std::vector<std::pair<BlockId, Phase>> used_;
};

}  // namespace

void check_partition(const Graph& graph, const Partition& partition) {
  Check(graph, partition).run();
}

}  // namespace lowtide

// Problem: put the parts of each half of each block into a topological order, or report the
// dependencies that form a cycle.
//
// Idea: a dependency between two ops of one phase is one between two parts of the innermost block
// that contains both ops, and of no other block. So all halves are ordered in one pass over all
// parts, after A. B. Kahn, 1962.
//
// Invariant: the listed parts of a half depend only on listed parts. An order at every level makes
// every half convex: a path that leaves a part and returns to it would be a cycle of parts.
//
// Loses: no known case. It stores eight bytes for each dependency.
#include "lowtide/graph/partition_order.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide {

BlockPaths::BlockPaths(const BlockTree& tree)
    : parent_(tree.parents), jump_(tree.parents.size()), depth_(tree.parents.size(), 0) {
  // As in dominators.cpp: one jump for each op, whose length depends only on the depth.
  jump_[BlockId(0)] = BlockId(0);
  for (std::size_t i = 1; i < tree.parents.size(); ++i) {
    const BlockId parent = tree.parents[i], near = jump_[parent], far = jump_[near];
    depth_[BlockId(i)] = depth_[parent] + 1;
    const bool equal = depth_[parent] - depth_[near] == depth_[near] - depth_[far];
    jump_[BlockId(i)] = equal && depth_[parent] > 0 ? far : parent;
  }
}

BlockId BlockPaths::climb(BlockId id, std::int32_t depth) const {
  while (depth_[id] > depth) id = depth_[jump_[id]] >= depth ? jump_[id] : parent_[id];
  return id;
}

BlockId BlockPaths::common(BlockId a, BlockId b) const {
  const std::int32_t depth = std::min(depth_[a], depth_[b]);
  a = climb(a, depth);
  b = climb(b, depth);
  while (a != b) {
    const bool apart = jump_[a] != jump_[b];
    a = apart ? jump_[a] : parent_[a];
    b = apart ? jump_[b] : parent_[b];
  }
  return a;
}

BlockId BlockPaths::below(BlockId outer, BlockId inner) const {
  return climb(inner, depth_[outer] + 1);
}

namespace {

// Parts are numbered: ops first, then the forward and the backward half of each block.
using PartNumber = std::uint32_t;
struct Edge {
  PartNumber from, to;
};

class PartOrder {
 public:
  PartOrder(const Graph& graph, const BlockTree& tree, const BlockPaths& paths,
            Partition& partition)
      : graph_(graph), tree_(tree), paths_(paths), partition_(partition) {}

  void run() {
    const std::size_t count = graph_.op_count() + 2 * tree_.parents.size();
    find_firsts(count);
    find_edges(count);
    using Ready = std::pair<std::size_t, PartNumber>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    std::size_t left = 0;
    for (PartNumber part = 0; part < count; ++part) {
      if (firsts_[part] == kNone || is_root(part)) continue;
      ++left;
      if (waiting_[part] == 0) ready.emplace(firsts_[part], part);
    }
    while (!ready.empty()) {
      const PartNumber part = ready.top().second;
      ready.pop();
      --left;
      list(part);
      for (std::size_t i = first_edge_[part]; i < first_edge_[part + 1]; ++i)
        if (--waiting_[targets_[i]] == 0) ready.emplace(firsts_[targets_[i]], targets_[i]);
    }
    if (left > 0) refuse();
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  bool is_op(PartNumber part) const { return part < graph_.op_count(); }
  BlockId block_of(PartNumber part) const { return BlockId((part - graph_.op_count()) / 2); }
  Phase phase_of(PartNumber part) const {
    if (is_op(part)) return partition_.phases.of[OpId(part)];
    return (part - graph_.op_count()) % 2 == 0 ? Phase::forward : Phase::backward;
  }
  PartNumber number(BlockId block, Phase phase) const {
    return static_cast<PartNumber>(graph_.op_count() + 2 * block.index() +
                                   (phase == Phase::forward ? 0 : 1));
  }
  bool is_root(PartNumber part) const {
    return !is_op(part) && block_of(part) == Partition::root();
  }
  // The part of `outer` that is the op or contains it.
  PartNumber part_of(BlockId outer, OpId op) const {
    const BlockId inner = tree_.block_of[op];
    if (inner == outer) return static_cast<PartNumber>(op.index());
    return number(paths_.below(outer, inner), partition_.phases.of[op]);
  }
  BlockId holder(PartNumber part) const {
    return is_op(part) ? tree_.block_of[OpId(part)] : paths_.parent(block_of(part));
  }

  // The position of each part's first op; kNone for a half without ops.
  void find_firsts(std::size_t count) {
    firsts_.assign(count, kNone);
    for (std::size_t i = 0; i < graph_.op_count(); ++i) {
      firsts_[i] = graph_.position(OpId(i));
      std::size_t& first = firsts_[number(tree_.block_of[OpId(i)], partition_.phases.of[OpId(i)])];
      first = std::min(first, firsts_[i]);
    }
    for (std::size_t i = tree_.parents.size(); i-- > 1;)
      for (const Phase phase : {Phase::forward, Phase::backward}) {
        std::size_t& outer = firsts_[number(tree_.parents[i], phase)];
        outer = std::min(outer, firsts_[number(BlockId(i), phase)]);
      }
  }

  std::optional<Edge> edge(OpId from, OpId to) const {
    if (partition_.phases.of[from] != partition_.phases.of[to]) return std::nullopt;
    const BlockId a = tree_.block_of[from], b = tree_.block_of[to];
    const BlockId outer = a == b ? a : paths_.common(a, b);
    const Edge edge{part_of(outer, from), part_of(outer, to)};
    if (edge.from == edge.to) return std::nullopt;
    return edge;
  }

  template <class Visit>
  void each_dependency(Visit visit) const {
    for (std::size_t i = 0; i < graph_.op_count(); ++i)
      for (const OpId next : graph_.successors(OpId(i)))
        if (const auto found = edge(OpId(i), next)) visit(*found, OpId(i), next);
  }

  void find_edges(std::size_t count) {
    std::vector<Edge> edges;
    first_edge_.assign(count + 1, 0);
    waiting_.assign(count, 0);
    each_dependency([&](Edge edge, OpId, OpId) {
      edges.push_back(edge);
      ++first_edge_[edge.from + 1];
      ++waiting_[edge.to];
    });
    for (std::size_t i = 0; i < count; ++i) first_edge_[i + 1] += first_edge_[i];
    targets_.resize(edges.size());
    std::vector<std::size_t> next(first_edge_.begin(), first_edge_.end() - 1);
    for (const Edge& edge : edges) targets_[next[edge.from]++] = edge.to;
  }

  void list(PartNumber part) {
    Block& outer = partition_.blocks[holder(part)];
    Half& half = phase_of(part) == Phase::forward ? outer.forward : outer.backward;
    half.parts.push_back(is_op(part) ? BlockPart{OpId(part), BlockId()}
                                     : BlockPart{OpId(), block_of(part)});
  }

  struct Step {
    Edge edge;
    OpId from, to;
  };

  // Some parts depend on each other in a cycle: walk back from one of them until a part is met
  // twice.
  [[noreturn]] void refuse() const {
    std::vector<std::optional<Step>> before(waiting_.size());
    each_dependency([&](Edge edge, OpId from, OpId to) {
      if (waiting_[edge.from] > 0 && waiting_[edge.to] > 0 && !before[edge.to])
        before[edge.to] = Step{edge, from, to};
    });
    PartNumber part = 0;
    while (waiting_[part] == 0 || !before[part]) ++part;
    std::vector<std::uint8_t> seen(waiting_.size(), 0);
    for (; seen[part] == 0; part = before[part]->edge.from) seen[part] = 1;
    std::vector<Step> circle;
    PartNumber at = part;
    do {
      circle.push_back(*before[at]);
      at = before[at]->edge.from;
    } while (at != part);
    std::ranges::reverse(circle);
    throw_circle(std::move(circle));
  }

  [[noreturn]] void throw_circle(std::vector<Step> circle) const {
    const auto is_block = [&](const Step& step) { return !is_op(step.edge.from); };
    const auto blocks = std::ranges::count_if(circle, is_block);
    std::ranges::rotate(circle, std::ranges::find_if(circle, is_block));
    const std::string place = label(partition_, block_of(circle.front().edge.from));
    constexpr std::size_t kMost = 8;  // most steps of the cycle in a message
    std::string way;
    for (std::size_t i = 0; i < std::min(circle.size(), kMost); ++i) {
      const Step& step = circle[i];
      if (i == 0) way += graph_.label(step.from);
      if (i > 0 && is_block(step)) way += " .. " + graph_.label(step.from);
      way += " -> " + graph_.label(step.to);
      if (!is_op(step.edge.to)) way += " (" + label(partition_, block_of(step.edge.to)) + ")";
    }
    if (circle.size() > kMost) way += " -> ...";
    if (blocks == 1)
      throw InputError(place, "the block is not convex: a way leads out of it and back in, " + way);
    throw InputError(place, "the block and others depend on one another: " + way);
  }

  const Graph& graph_;
  const BlockTree& tree_;
  const BlockPaths& paths_;
  Partition& partition_;
  std::vector<std::size_t> firsts_, first_edge_;
  std::vector<PartNumber> targets_;
  std::vector<std::uint32_t> waiting_;  // for each part, the number of its dependencies in the half
                                        // that are not listed yet
};

}  // namespace

void order_parts(const Graph& graph, const BlockTree& tree, const BlockPaths& paths,
                 Partition& partition) {
  PartOrder(graph, tree, paths, partition).run();
}

}  // namespace lowtide

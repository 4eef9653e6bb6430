// Problem: almost every convex set of ops could be split. Which few are worth planning?
//
// Idea: a split lowers the peak only if the region holds tensors that are live at the peak (hot).
// So for each axis, on the graph of the ops that carry it, a dominator is scored: half of the hot
// bytes of the ops that it dominates, minus the inputs of its parts that are not hot and must be
// live throughout. Scores are grouped into levels, since more savings cost more time. In each
// level the deepest dominators give the regions. The regions of all axes form a tree by inclusion.
//
// Source: MAGIS (R. Chen et al., ASPLOS 2024), Algorithm 1, equations 3 and 4, with the input term
// that its released code omits, and with a virtual dominator above all ops, which stands for the
// input tensor. A region that is not legal is reduced until it is (shape_region).
//
// Invariant: a node's ops are convex and carry its axis; children are proper subsets of parents.
//
// Loses: if no single op dominates the region, as where two towers join.
#include "lowtide/rewrite/fission_tree.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "lowtide/graph/dominators.h"
#include "lowtide/rewrite/convex.h"
#include "lowtide/rewrite/profile.h"

namespace lowtide::rewrite {

namespace {

constexpr std::size_t kMostOfLevel = 12;  // for each axis, by score

// Whether each tensor is live at the peak of the order.
std::vector<std::uint8_t> hot_spots(const Graph& graph) {
  const Profile profile = profile_of(graph);
  std::vector<std::uint8_t> hot(graph.tensor_count(), 0);
  for (const Interval& one : profile.intervals)
    if (one.first <= profile.fullest && profile.fullest <= one.last) hot[one.tensor.index()] = 1;
  return hot;
}

// The divisors of the number of slices; without a divisor, numbers of parts with a shorter last
// part.
std::vector<std::int64_t> numbers_for(std::int64_t slices) {
  const std::vector<std::int64_t> all = parts_for(slices);
  std::vector<std::int64_t> found;
  std::ranges::copy_if(all, std::back_inserter(found),
                       [&](std::int64_t parts) { return slices % parts == 0; });
  return found.empty() ? all : found;
}

// The dominators of one axis, the virtual one last.
class Rulers {
 public:
  Rulers(const Graph& graph, const Family& family, const std::vector<std::uint8_t>& hot)
      : graph_(graph), hot_(hot), root_(graph.op_count()), score_(root_ + 1, 0) {
    for (const auto& carry : family.reach.carries) among_.push_back(carry ? 1 : 0);
    tree_.emplace(dominators(graph, among_));
    below_.resize(root_ + 1);
    for (const OpId op : graph.order())
      if (is_among(op)) below_[above(op)].push_back(op.index());
    number();
    measure();
  }

  std::size_t root() const { return root_; }
  double score(std::size_t ruler) const { return score_[ruler]; }
  std::vector<std::size_t> all() const {
    std::vector<std::size_t> found;
    for (const OpId op : graph_.order())
      if (is_among(op)) found.push_back(op.index());
    found.push_back(root_);
    return found;
  }
  // The ops that it dominates, without itself, in the given order.
  std::vector<OpId> ruled(std::size_t ruler) const {
    std::vector<OpId> ops;
    for (const OpId op : graph_.order())
      if (is_among(op) && op.index() != ruler && first_[ruler] <= first_[op.index()] &&
          first_[op.index()] < last_[ruler])
        ops.push_back(op);
    return ops;
  }
  // Those of them that dominate no other of them.
  std::vector<std::size_t> deepest(const std::vector<std::size_t>& of) const {
    std::vector<std::size_t> found, starts;
    for (const std::size_t ruler : of) starts.push_back(first_[ruler]);
    std::ranges::sort(starts);
    for (const std::size_t ruler : of) {
      const auto next = std::ranges::upper_bound(starts, first_[ruler]);
      if (next == starts.end() || *next >= last_[ruler]) found.push_back(ruler);
    }
    return found;
  }

 private:
  bool is_among(OpId op) const { return among_[op.index()] != 0; }
  std::size_t above(OpId op) const {
    const OpId parent = tree_->parent(op);
    return parent.valid() ? parent.index() : root_;
  }

  // Positions in a traversal of the tree: the dominated ops of a node lie between its own position
  // and its last.
  void number() {
    first_.assign(root_ + 1, 0);
    last_.assign(root_ + 1, 0);
    std::size_t next = 0;
    std::vector<std::pair<std::size_t, std::size_t>> stack{{root_, 0}};
    first_[root_] = next++;
    while (!stack.empty()) {
      auto& [node, child] = stack.back();
      if (child == below_[node].size()) {
        last_[node] = next;
        stack.pop_back();
        continue;
      }
      const std::size_t below = below_[node][child++];
      first_[below] = next++;
      stack.emplace_back(below, 0);
    }
  }

  void measure() {
    std::vector<double> heat(root_ + 1, 0), read(root_ + 1, 0);
    const auto bytes = [&](TensorId id) { return static_cast<double>(graph_.bytes(id).count()); };
    for (const TensorId id : AllIds<TensorId>(graph_.tensor_count())) {
      const OpId maker = graph_.producer(id);
      const bool made = maker.valid() && is_among(maker), hot = hot_[id.index()] != 0;
      if (made && hot) heat[maker.index()] += bytes(id);
      if (!made && !hot) add_once(id, bytes(id), read);
    }
    const auto order = graph_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      if (!is_among(*op)) continue;
      const std::size_t at = op->index(), up = above(*op);
      // Its outputs are inputs of the ops that it dominates.
      double own = 0, own_hot = 0;
      for (const TensorId id : graph_.outputs(*op))
        (hot_[id.index()] != 0 ? own_hot : own) += bytes(id);
      score_[at] = (heat[at] - own_hot) / 2 - read[at] - (below_[at].empty() ? 0 : own);
      heat[up] += heat[at];
      read[up] += read[at];
    }
    score_[root_] = heat[root_] / 2 - read[root_];
  }

  // Counts once for every dominator of a reader: added at each reader, subtracted at common
  // ancestors.
  void add_once(TensorId id, double bytes, std::vector<double>& read) const {
    std::vector<OpId> readers;
    for (const OpId op : graph_.consumers(id))
      if (is_among(op)) readers.push_back(op);
    std::ranges::sort(readers, {}, [&](OpId op) { return first_[op.index()]; });
    for (std::size_t i = 0; i < readers.size(); ++i) {
      read[readers[i].index()] += bytes;
      if (i == 0) continue;
      const OpId meet = tree_->common(readers[i - 1], readers[i]);
      read[meet.valid() ? meet.index() : root_] -= bytes;
    }
  }

  const Graph& graph_;
  const std::vector<std::uint8_t>& hot_;
  std::size_t root_;
  std::vector<std::uint8_t> among_;
  std::optional<DominatorTree> tree_;
  std::vector<std::vector<std::size_t>> below_;
  std::vector<std::size_t> first_, last_;
  std::vector<double> score_;
};

void add_axis(const Graph& graph, const Family& family, const std::vector<std::uint8_t>& hot,
              std::int64_t levels, const std::function<bool()>& stops,
              std::vector<FissionNode>& nodes) {
  const Rulers rulers(graph, family, hot);
  const auto all = rulers.all();
  double best = 0;
  for (const std::size_t ruler : all) best = std::max(best, rulers.score(ruler));
  if (best <= 0) return;
  const auto level_of = [&](std::size_t ruler) {
    return static_cast<std::int64_t>(rulers.score(ruler) / best * static_cast<double>(levels));
  };
  std::set<std::vector<OpId>> seen;
  for (std::int64_t level = levels; level >= 1; --level) {
    std::vector<std::size_t> of;
    std::ranges::copy_if(all, std::back_inserter(of),
                         [&](std::size_t ruler) { return level_of(ruler) == level; });
    std::vector<std::size_t> deepest = rulers.deepest(of);
    std::ranges::stable_sort(deepest, std::greater{},
                             [&](std::size_t ruler) { return rulers.score(ruler); });
    if (deepest.size() > kMostOfLevel) deepest.resize(kMostOfLevel);
    for (const std::size_t ruler : deepest) {
      if (stops && stops()) return;
      const auto ruled = rulers.ruled(ruler);
      if (ruled.size() < 2) continue;
      auto region = shape_region(graph, family, ruled);
      if (!region || !seen.insert(region->ops).second) continue;
      FissionNode node;
      node.numbers = numbers_for(region->slices);
      if (node.numbers.empty()) continue;
      if (2 * region->ops.size() > graph.op_count())
        region->kind = Candidate::Kind::whole_graph;
      else if (ruler != rulers.root())
        region->kind = Candidate::Kind::ruled;
      node.region = std::move(*region);
      if (ruler != rulers.root()) node.ruler = OpId(ruler);
      node.score = Bytes(static_cast<std::int64_t>(std::min(rulers.score(ruler), 0x1p62)));
      node.level = level;
      nodes.push_back(std::move(node));
    }
  }
}

// Largest first, so that parents come before their children.
FissionTree hang(const Graph& graph, std::vector<FissionNode> nodes) {
  std::ranges::stable_sort(nodes, std::greater{},
                           [](const FissionNode& node) { return node.region.ops.size(); });
  FissionTree tree{.nodes = std::move(nodes), .across = {}};
  const std::size_t count = tree.nodes.size();
  tree.across.assign(count, std::vector<std::uint8_t>(count, 0));
  for (std::size_t a = 0; a < count; ++a) {
    const Members members = members_of(graph, tree.nodes[a].region.ops);
    for (std::size_t b = a + 1; b < count; ++b) {
      const auto& ops = tree.nodes[b].region.ops;
      const auto inside = static_cast<std::size_t>(
          std::ranges::count_if(ops, [&](OpId op) { return members[op.index()] != 0; }));
      const bool holds = inside == ops.size() && ops.size() < tree.nodes[a].region.ops.size();
      // The smallest node that contains it comes last.
      if (holds)
        tree.nodes[b].parent = a;
      else if (inside > 0)
        tree.across[a][b] = tree.across[b][a] = 1;
    }
  }
  // A node that contains it also contains its parent, or overlaps the parent.
  for (std::size_t b = 0; b < count; ++b)
    if (const std::size_t parent = tree.nodes[b].parent; parent != FissionNode::kNone)
      tree.nodes[parent].children.push_back(b);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      if (tree.across[a][b] != 0 || tree.is_above(a, b)) continue;
      const Members members = members_of(graph, tree.nodes[a].region.ops);
      if (members[tree.nodes[b].region.ops.front().index()] != 0)
        tree.across[a][b] = tree.across[b][a] = 1;
    }
  return tree;
}

}  // namespace

bool FissionTree::is_above(std::size_t ancestor, std::size_t node) const {
  for (std::size_t at = nodes[node].parent; at != FissionNode::kNone; at = nodes[at].parent)
    if (at == ancestor) return true;
  return false;
}

FissionTree fission_tree(const Graph& graph, std::int64_t levels,
                         const std::function<bool()>& stops) {
  const std::vector<std::uint8_t> hot = hot_spots(graph);
  std::vector<FissionNode> nodes;
  for (const Family& family : families(graph)) {
    if (stops && stops()) break;
    add_axis(graph, family, hot, levels, stops, nodes);
  }
  return hang(graph, std::move(nodes));
}

}  // namespace lowtide::rewrite

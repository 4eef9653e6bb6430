// Problem: a tree decomposition of small width, in near-linear time on graphs that have one.
//
// Idea: eliminate the nodes one by one from a priority queue. The key of min-fill is the number of
// missing edges between the neighbours of a node. It is kept up to date: a new edge takes one from
// each node that sees both of its ends; the neighbours of the eliminated node are counted anew.
//
// Source: Kumar et al., NeurIPS 2019, section 3 (min-fill) and Lemma 1 (`shrink`).
//
// Invariant: a node's bag is itself and its neighbours at the time when it is eliminated. All of
// them are in the bag of the first neighbour to be eliminated, which is the parent.
//
// Loses: dense graphs, where the bags are as wide as the graph: elimination gives up beyond a
// width.
#include "lowtide/solve/kumar/twremat/elimination.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace lowtide::solve::kumar::twremat {

namespace {

std::size_t at(Node node) { return static_cast<std::size_t>(node); }

class Eliminator {
 public:
  Eliminator(const Neighbours& graph, const std::vector<std::int32_t>& positions,
             const EliminationSettings& settings, const std::function<bool(std::int64_t)>& spend)
      : neighbours_(graph),
        positions_(positions),
        settings_(settings),
        spend_(spend),
        fill_(graph.size(), 0),
        version_(graph.size(), 0),
        gone_(graph.size(), 0) {}

  std::optional<TreeDecomposition> run() {
    const std::size_t count = neighbours_.size();
    bag_of_.assign(count, -1);
    for (std::size_t i = 0; i < count; ++i) {
      if (settings_.rule == Elimination::min_fill) recount(static_cast<Node>(i));
      push(static_cast<Node>(i));
      if (stopped_) return std::nullopt;
    }
    while (!queue_.empty()) {
      const Entry top = queue_.top();
      queue_.pop();
      const Node node = std::get<3>(top);
      if (gone_[at(node)] != 0 || std::get<4>(top) != version_[at(node)]) continue;
      const std::size_t degree = neighbours_[at(node)].size();
      if (degree > settings_.widest) return std::nullopt;
      if (degree >= settings_.dense) {
        finish_dense();
        break;
      }
      eliminate(node);
      if (stopped_) return std::nullopt;
    }
    link();
    if (result_.width() > settings_.widest) return std::nullopt;
    return std::move(result_);
  }

 private:
  // Key, neighbours, position, node, version.
  using Entry = std::tuple<std::int64_t, std::int64_t, std::int32_t, Node, std::uint32_t>;

  void spend(std::size_t units) {
    charged_ += units;
    if (charged_ < 512) return;
    stopped_ |= spend_(static_cast<std::int64_t>(std::exchange(charged_, 0) / 32));
  }

  bool adjacent(Node a, Node b) const {
    const auto& row = neighbours_[at(a)];
    return std::binary_search(row.begin(), row.end(), b);
  }

  void recount(Node node) {
    const auto& row = neighbours_[at(node)];
    std::int64_t missing = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      // Both rows ascend: counts neighbours of this node that are not neighbours of the other.
      const auto& other = neighbours_[at(row[i])];
      auto seen = std::upper_bound(other.begin(), other.end(), row[i]);
      for (std::size_t j = i + 1; j < row.size(); ++j) {
        while (seen != other.end() && *seen < row[j]) ++seen;
        missing += seen == other.end() || *seen != row[j];
      }
      spend(row.size() + static_cast<std::size_t>(seen - other.begin()));
      if (stopped_) return;
    }
    fill_[at(node)] = missing;
  }

  void push(Node node) {
    const auto degree = static_cast<std::int64_t>(neighbours_[at(node)].size());
    std::int64_t key = 0;
    if (settings_.rule == Elimination::min_fill) key = fill_[at(node)];
    if (settings_.rule == Elimination::min_degree) key = degree;
    queue_.emplace(-key, settings_.rule == Elimination::given ? 0 : -degree, -positions_[at(node)],
                   node, ++version_[at(node)]);
    spend(16);
  }

  void join(Node a, Node b) {
    auto& row = neighbours_[at(a)];
    row.insert(std::lower_bound(row.begin(), row.end(), b), b);
  }

  void eliminate(Node node) {
    const Bag around = neighbours_[at(node)];
    for (Node other : around) {
      auto& row = neighbours_[at(other)];
      row.erase(std::lower_bound(row.begin(), row.end(), node));
    }
    changed_.clear();
    for (std::size_t i = 0; i < around.size(); ++i) {
      for (std::size_t j = i + 1; j < around.size(); ++j) {
        if (adjacent(around[i], around[j])) continue;
        if (settings_.rule == Elimination::min_fill) {
          both_.clear();
          const auto &a = neighbours_[at(around[i])], &b = neighbours_[at(around[j])];
          std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both_));
          spend(a.size() + b.size());
          for (Node other : both_) --fill_[at(other)];
          changed_.insert(changed_.end(), both_.begin(), both_.end());
        }
        join(around[i], around[j]);
        join(around[j], around[i]);
      }
      spend(around.size());
    }
    if (settings_.rule == Elimination::min_fill)
      for (Node other : around) recount(other);
    if (settings_.rule != Elimination::given) {
      changed_.insert(changed_.end(), around.begin(), around.end());
      std::sort(changed_.begin(), changed_.end());
      changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
      for (Node other : changed_) push(other);
    }
    gone_[at(node)] = 1;
    bag_of_[at(node)] = static_cast<std::int32_t>(result_.bags.size());
    made_of_.push_back(node);
    result_.bags.push_back(around);
    result_.bags.back().insert(std::lower_bound(around.begin(), around.end(), node) -
                                   around.begin() + result_.bags.back().begin(),
                               node);
    neighbours_[at(node)] = {};
  }

  void finish_dense() {
    Bag rest;
    for (std::size_t i = 0; i < gone_.size(); ++i)
      if (gone_[i] == 0) rest.push_back(static_cast<Node>(i));
    for (Node node : rest) bag_of_[at(node)] = static_cast<std::int32_t>(result_.bags.size());
    made_of_.push_back(-1);
    result_.bags.push_back(std::move(rest));
  }

  // The parent is the bag of the first of its other nodes to be eliminated; roots are chained.
  void link() {
    auto& parent = result_.parent;
    parent.assign(result_.bags.size(), -1);
    std::int32_t root = -1;
    for (std::size_t b = result_.bags.size(); b > 0; --b) {
      std::int32_t first = -1;
      for (Node node : result_.bags[b - 1]) {
        const std::int32_t other = bag_of_[at(node)];
        if (node == made_of_[b - 1] || made_of_[b - 1] < 0) continue;
        if (first < 0 || other < first) first = other;
      }
      parent[b - 1] = first >= 0 ? first : root;
      if (first < 0) root = static_cast<std::int32_t>(b - 1);
    }
  }

  Neighbours neighbours_;
  const std::vector<std::int32_t>& positions_;
  const EliminationSettings& settings_;
  const std::function<bool(std::int64_t)>& spend_;
  std::vector<std::int64_t> fill_;
  std::vector<std::uint32_t> version_;
  std::vector<std::uint8_t> gone_;
  std::priority_queue<Entry> queue_;
  std::vector<std::int32_t> bag_of_;
  std::vector<Node> made_of_;  // by bag: what was eliminated with it
  Bag both_, changed_;
  TreeDecomposition result_;
  std::size_t charged_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::size_t TreeDecomposition::width() const {
  std::size_t largest = 1;
  for (const Bag& bag : bags) largest = std::max(largest, bag.size());
  return largest - 1;
}

std::optional<TreeDecomposition> decompose(const Neighbours& graph,
                                           const std::vector<std::int32_t>& positions,
                                           const EliminationSettings& settings,
                                           const std::function<bool(std::int64_t)>& spend) {
  return Eliminator(graph, positions, settings, spend).run();
}

TreeDecomposition shrink(const TreeDecomposition& decomposition) {
  const std::size_t count = decomposition.bags.size();
  std::vector<std::size_t> merged(count);  // union-find; of each set the widest bag stands
  std::iota(merged.begin(), merged.end(), std::size_t{0});
  const auto find = [&](std::size_t bag) {
    while (merged[bag] != bag) bag = merged[bag] = merged[merged[bag]];
    return bag;
  };
  const auto contains = [&](std::size_t a, std::size_t b) {
    const Bag &outer = decomposition.bags[a], &inner = decomposition.bags[b];
    return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
  };
  std::vector<std::uint8_t> joined(count, 0);
  for (std::size_t b = 0; b < count; ++b) {
    if (decomposition.parent[b] < 0) continue;
    const std::size_t low = find(b), high = find(at(decomposition.parent[b]));
    if (contains(low, high))
      merged[high] = low;
    else if (contains(high, low))
      merged[low] = high;
    else
      continue;
    joined[b] = 1;
  }
  // Each remaining set hangs from the set above its top bag, whose edge to its parent is not
  // joined.
  TreeDecomposition result;
  std::vector<std::int32_t> index(count, -1);
  for (std::size_t b = 0; b < count; ++b)
    if (find(b) == b) {
      index[b] = static_cast<std::int32_t>(result.bags.size());
      result.bags.push_back(decomposition.bags[b]);
    }
  result.parent.assign(result.bags.size(), -1);
  for (std::size_t b = 0; b < count; ++b)
    if (joined[b] == 0 && decomposition.parent[b] >= 0)
      result.parent[at(index[find(b)])] = index[find(at(decomposition.parent[b]))];
  return result;
}

}  // namespace lowtide::solve::kumar::twremat

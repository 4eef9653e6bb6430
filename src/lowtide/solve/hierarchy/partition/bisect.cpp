// Problem: bisect a DAG with all links in one direction, few bytes across, and given sizes.
//
// Idea: match pairs of nodes with most bytes between them, repeatedly, until few nodes are left.
// Cut these along a topological order at the best position. Then undo the matching level by level,
// and at each level move nodes at the border to the other side if that saves bytes.
//
// Source: dagP (see multilevel.h), with its safe rule for pairs: of the two ends of a link, one is
// the only successor or the only predecessor of the other.
//
// Invariant: such pairs, all contracted at once, make no cycle, since every path into a pair
// reaches its exit. A node changes sides only if all its successors are on the other side, or all
// its predecessors.
//
// Loses: if every node has many links, pairs are rare, and the cut is that of an order. Refinements
// that accept a temporary loss are better.
#include "lowtide/solve/hierarchy/partition/bisect.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace lowtide::solve::partition {

namespace {

using Nodes = std::vector<Node>;
using Sides = std::vector<std::uint8_t>;

constexpr std::size_t kCoarsest = 64;  // nodes
constexpr int kPasses = 6;             // over the border, at each level

struct Level {
  LayerDag dag;
  std::vector<std::size_t> weights;
};

// Always the smallest ready node by `key`; with `back` against the links.
Nodes topological(const LayerDag& dag, std::span<const Node> key, bool back) {
  std::vector<std::size_t> waiting(dag.size());
  using Ready = std::pair<Node, Node>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (Node node = 0; node < dag.size(); ++node) {
    waiting[node] = (back ? dag.behind : dag.before)[node].size();
    if (waiting[node] == 0) ready.emplace(key[node], node);
  }
  Nodes order;
  while (!ready.empty()) {
    const Node node = ready.top().second;
    ready.pop();
    order.push_back(node);
    for (const Node other : (back ? dag.before : dag.behind)[node])
      if (--waiting[other] == 0) ready.emplace(key[other], other);
  }
  return order;
}

// The group of each node in the next coarser level; nullopt if hardly any pairs are left.
Nodes pair_up(const Level& level, std::size_t heaviest) {
  const LayerDag& dag = level.dag;
  constexpr Node kNone = UINT32_MAX;
  Nodes partner(dag.size(), kNone);
  std::size_t pairs = 0;
  for (Node node = 0; node < dag.size(); ++node) {
    if (partner[node] != kNone) continue;
    Node best = kNone;
    Bytes most(-1);
    const auto look_at = [&](Node other, bool safe, Bytes bytes) {
      if (!safe || partner[other] != kNone || bytes <= most ||
          level.weights[node] + level.weights[other] > heaviest)
        return;
      best = other;
      most = bytes;
    };
    for (const std::uint32_t value : dag.made[node]) {
      const auto readers = dag.readers[value];
      if (readers.empty()) continue;
      const Node next = readers.front();
      look_at(next, dag.behind[node].size() == 1 || dag.before[next].size() == 1,
              dag.values[value].bytes);
    }
    for (const Node next : dag.behind[node])
      look_at(next, dag.behind[node].size() == 1 || dag.before[next].size() == 1, Bytes(0));
    if (best == kNone) continue;
    partner[node] = best;
    partner[best] = node;
    ++pairs;
  }
  if (10 * pairs < dag.size()) return {};
  Nodes group(dag.size());
  Node next = 0;
  for (Node node = 0; node < dag.size(); ++node) {
    const bool second = partner[node] != kNone && partner[node] < node;
    group[node] = second ? group[partner[node]] : next++;
  }
  return group;
}

// The next coarser level, with its nodes in a topological order; `group` is renumbered accordingly.
Level contract(const Level& level, Nodes& group) {
  const std::size_t count = 1 + *std::ranges::max_element(group);
  Nodes numbers(count);
  std::iota(numbers.begin(), numbers.end(), Node{0});
  const LayerDag links = lowtide::solve::partition::contract(level.dag, group, count);
  const Nodes order = topological(links, numbers, false);
  for (Node i = 0; i < count; ++i) numbers[order[i]] = i;
  for (Node& one : group) one = numbers[one];
  Level above{lowtide::solve::partition::contract(level.dag, group, count),
              std::vector<std::size_t>(count, 0)};
  for (Node node = 0; node < group.size(); ++node)
    above.weights[group[node]] += level.weights[node];
  return above;
}

class Border {
 public:
  Border(const Level& level, Sides& sides, std::size_t least, std::size_t most)
      : dag_(level.dag),
        weights_(level.weights),
        sides_(sides),
        least_(least),
        most_(most),
        readers_(dag_.values.size(), 0) {
    for (std::uint32_t value = 0; value < dag_.values.size(); ++value)
      for (const Node reader : dag_.readers[value]) readers_[value] += sides[reader];
    for (Node node = 0; node < dag_.size(); ++node)
      if (sides[node] == 0) first_ += weights_[node];
  }

  // Repeats until no node changes sides.
  void refine() {
    for (int pass = 0; pass < kPasses; ++pass) {
      bool changed = false;
      // Nodes before the border in reverse order, nodes after it in order: each is visited after
      // the nodes that must move first.
      for (Node node = static_cast<Node>(dag_.size()); node-- > 0;)
        changed = (sides_[node] == 0 && try_move(node)) || changed;
      for (Node node = 0; node < dag_.size(); ++node)
        changed = (sides_[node] == 1 && try_move(node)) || changed;
      if (!changed) return;
    }
  }

 private:
  bool try_move(Node node) {
    const bool to_second = sides_[node] == 0;
    for (const Node other : to_second ? dag_.behind[node] : dag_.before[node])
      if (sides_[other] == sides_[node]) return false;
    const std::size_t after = to_second ? first_ - weights_[node] : first_ + weights_[node];
    if (after < least_ || after > most_) return false;
    if (gain(node, to_second) <= 0) return false;
    sides_[node] = to_second ? 1 : 0;
    first_ = after;
    for (const std::uint32_t value : dag_.read[node])
      to_second ? ++readers_[value] : --readers_[value];
    return true;
  }

  // A tensor crosses if its producer is in the first half and one of its readers in the second.
  std::int64_t gain(Node node, bool to_second) const {
    std::int64_t bytes = 0;
    for (const std::uint32_t value : dag_.made[node]) {
      const std::int64_t size = dag_.values[value].bytes.count();
      if (readers_[value] > 0) bytes += to_second ? size : -size;
    }
    for (const std::uint32_t value : dag_.read[node]) {
      if (sides_[dag_.values[value].maker] != 0) continue;
      const std::int64_t size = dag_.values[value].bytes.count();
      if (to_second && readers_[value] == 0) bytes -= size;
      if (!to_second && readers_[value] == 1) bytes += size;
    }
    return bytes;
  }

  const LayerDag& dag_;
  const std::vector<std::size_t>& weights_;
  Sides& sides_;
  std::size_t least_, most_, first_ = 0;  // weight of the first half
  std::vector<std::uint32_t> readers_;    // by value, in the second half
};

// The best prefix of the order within the limits, or the one nearest to them.
std::pair<Bytes, Sides> cut_along(const Level& level, const Nodes& order, std::size_t least,
                                  std::size_t most) {
  const LayerDag& dag = level.dag;
  std::vector<std::size_t> left(dag.values.size());
  for (std::uint32_t value = 0; value < dag.values.size(); ++value)
    left[value] = dag.readers[value].size();
  Bytes crossing, best = Bytes::max();
  std::size_t weight = 0, at = 0, farthest = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    for (const std::uint32_t value : dag.made[order[i]])
      if (left[value] > 0) crossing += dag.values[value].bytes;
    for (const std::uint32_t value : dag.read[order[i]])
      if (--left[value] == 0) crossing -= dag.values[value].bytes;
    weight += level.weights[order[i]];
    const std::size_t off = weight < least ? least - weight : weight > most ? weight - most : 0;
    if (off > farthest || (off == farthest && crossing >= best)) continue;
    farthest = off;
    best = crossing;
    at = i + 1;
  }
  Sides sides(dag.size(), 1);
  for (std::size_t i = 0; i < at; ++i) sides[order[i]] = 0;
  return {best, std::move(sides)};
}

}  // namespace

std::vector<std::uint8_t> bisect(const LayerDag& dag, double share, double off,
                                 const std::function<bool()>& stop) {
  const auto count = static_cast<double>(dag.size());
  const auto least = static_cast<std::size_t>(std::max(1.0, count * (share - off)));
  const auto most =
      std::max(least, static_cast<std::size_t>(std::min(count - 1, count * (share + off))));
  std::vector<Level> levels(1);
  levels.front() = {dag, std::vector<std::size_t>(dag.size(), 1)};
  std::vector<Nodes> groups;
  while (levels.back().dag.size() > kCoarsest && !(stop && stop())) {
    Nodes group = pair_up(levels.back(), std::max<std::size_t>(2, dag.size() / 10));
    if (group.empty()) break;
    levels.push_back(contract(levels.back(), group));
    groups.push_back(std::move(group));
  }

  const Level& coarsest = levels.back();
  Nodes numbers(coarsest.dag.size());
  std::iota(numbers.begin(), numbers.end(), Node{0});
  Nodes forward = topological(coarsest.dag, numbers, false);
  Nodes backward = topological(coarsest.dag, numbers, true);
  std::ranges::reverse(backward);
  auto [bytes, sides] = cut_along(coarsest, forward, least, most);
  auto [other_bytes, other_sides] = cut_along(coarsest, backward, least, most);
  if (other_bytes < bytes) sides = std::move(other_sides);

  for (std::size_t i = levels.size(); i-- > 0;) {
    Border(levels[i], sides, least, most).refine();
    if (i == 0) break;
    Sides below(groups[i - 1].size());
    for (Node node = 0; node < below.size(); ++node) below[node] = sides[groups[i - 1][node]];
    sides = std::move(below);
  }
  return sides;
}

}  // namespace lowtide::solve::partition

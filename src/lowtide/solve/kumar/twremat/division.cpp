// Problem: where to divide the tree, recursively, so that there are few levels.
//
// Idea: a tree has a bag whose removal leaves at most half on any side (Jordan 1869). All
// separators are found once, before any schedule is made, since the calls of Algorithm 1 need the
// same ones repeatedly. A limit of the recursion only truncates the tree of components.
//
// Source: Kumar et al., NeurIPS 2019, Lemma 3 and Algorithm 1. Weights of nodes are ours.
//
// Invariant: a node is in the separator of exactly one component. Of two neighbours, the component
// of one is that of the other or lies within it.
//
// Loses: a bag of hundreds of nodes is one separator, all of whose nodes are held together.
#include "lowtide/solve/kumar/twremat/division.h"

#include <algorithm>
#include <utility>

namespace lowtide::solve::kumar::twremat {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

class Divider {
 public:
  Divider(const TreeDecomposition& tree, std::span<const double> weights)
      : weights_(weights),
        links_(tree.bags.size()),
        removed_(tree.bags.size(), 0),
        below_(tree.bags.size(), 0),
        from_(tree.bags.size(), -1) {
    for (std::size_t b = 0; b < tree.parent.size(); ++b) {
      if (tree.parent[b] < 0) continue;
      links_[b].push_back(tree.parent[b]);
      links_[at(tree.parent[b])].push_back(static_cast<std::int32_t>(b));
    }
  }

  // Finds the separator of the subtree that contains `bag`; sets `bags` to the size of the subtree.
  std::int32_t separator(std::int32_t bag) {
    walk_.assign(1, bag);
    from_[at(bag)] = -1;
    double total = 0;
    for (std::size_t i = 0; i < walk_.size(); ++i) {
      const std::int32_t b = walk_[i];
      below_[at(b)] = weights_[at(b)];
      total += weights_[at(b)];
      for (std::int32_t next : links_[at(b)]) {
        if (next == from_[at(b)] || removed_[at(next)] != 0) continue;
        from_[at(next)] = b;
        walk_.push_back(next);
      }
    }
    for (std::size_t i = walk_.size(); i > 1; --i)
      below_[at(from_[at(walk_[i - 1])])] += below_[at(walk_[i - 1])];
    bags = walk_.size();
    // The deepest bag with at least half of the weight below it.
    std::int32_t best = bag;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t next : links_[at(best)]) {
        if (next == from_[at(best)] || removed_[at(next)] != 0) continue;
        if (2 * below_[at(next)] <= total) continue;
        best = next;
        moved = true;
        break;
      }
    }
    return best;
  }

  void remove(std::int32_t bag) { removed_[at(bag)] = 1; }
  bool removed(std::int32_t bag) const { return removed_[at(bag)] != 0; }
  const std::vector<std::int32_t>& links(std::int32_t bag) const { return links_[at(bag)]; }

  std::size_t bags = 0;

 private:
  std::span<const double> weights_;
  std::vector<std::vector<std::int32_t>> links_;
  std::vector<std::uint8_t> removed_;
  std::vector<double> below_;
  std::vector<std::int32_t> from_, walk_;
};

void sort_by(std::vector<Node>& nodes, const std::vector<std::int32_t>& positions) {
  std::sort(nodes.begin(), nodes.end(),
            [&](Node a, Node b) { return positions[at(a)] < positions[at(b)]; });
}

std::vector<double> weights_of_bags(const TreeDecomposition& tree,
                                    std::span<const double> weights) {
  std::vector<double> result(tree.bags.size(), 1);
  if (weights.empty()) return result;
  double total = 0;
  for (double weight : weights) total += weight;
  // An equal share for each bag keeps the depth logarithmic where nodes have no weight.
  result.assign(tree.bags.size(), 0.1 * total / static_cast<double>(tree.bags.size()));
  for (std::size_t b = 0; b < tree.bags.size(); ++b) {
    const Bag* above = tree.parent[b] < 0 ? nullptr : &tree.bags[at(tree.parent[b])];
    for (Node node : tree.bags[b])
      if (above == nullptr || !std::binary_search(above->begin(), above->end(), node))
        result[b] += weights[at(node)];
  }
  return result;
}

}  // namespace

std::int32_t balanced_separator(const TreeDecomposition& tree, std::span<const double> weights) {
  return Divider(tree, weights).separator(0);
}

Division divide(const TreeDecomposition& tree, const std::vector<std::int32_t>& positions,
                std::span<const double> weights) {
  Division division;
  division.part_of.assign(positions.size(), -1);
  if (tree.bags.empty()) return division;
  const std::vector<double> of_bags = weights_of_bags(tree, weights);
  Divider divider(tree, of_bags);
  std::vector<std::pair<std::int32_t, std::int32_t>> waiting{{0, -1}};  // a bag of it, its parent
  while (!waiting.empty()) {
    const auto [bag, parent] = waiting.back();
    waiting.pop_back();
    const std::int32_t separator = divider.separator(bag);
    const auto number = static_cast<std::int32_t>(division.parts.size());
    Part part;
    part.parent = parent;
    part.bags = divider.bags;
    if (parent >= 0) part.depth = division.parts[at(parent)].depth + 1;
    for (Node node : tree.bags[at(separator)]) {
      if (division.part_of[at(node)] >= 0) continue;
      division.part_of[at(node)] = number;
      part.separator.push_back(node);
    }
    sort_by(part.separator, positions);
    division.parts.push_back(std::move(part));
    divider.remove(separator);
    for (std::int32_t next : divider.links(separator))
      if (!divider.removed(next)) waiting.emplace_back(next, number);
  }
  return division;
}

Division stop_below(const Division& division, const std::vector<std::int32_t>& positions,
                    std::size_t limit) {
  Division result;
  std::vector<std::int32_t> number(division.parts.size());
  for (std::size_t p = 0; p < division.parts.size(); ++p) {
    const Part& part = division.parts[p];
    const std::int32_t parent = part.parent < 0 ? -1 : number[at(part.parent)];
    if (parent >= 0 && result.parts[at(parent)].bags < limit) {
      auto& whole = result.parts[at(parent)].separator;
      number[p] = parent;
      whole.insert(whole.end(), part.separator.begin(), part.separator.end());
      continue;
    }
    number[p] = static_cast<std::int32_t>(result.parts.size());
    result.parts.push_back(part);
    result.parts.back().parent = parent;
  }
  for (Part& part : result.parts) sort_by(part.separator, positions);
  result.part_of.resize(division.part_of.size());
  for (std::size_t i = 0; i < result.part_of.size(); ++i)
    result.part_of[i] = number[at(division.part_of[i])];
  return result;
}

}  // namespace lowtide::solve::kumar::twremat

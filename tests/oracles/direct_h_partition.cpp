// Algorithm 2 of HiRemate's appendix A, line by line, on sets.
#include "oracles/direct_h_partition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

namespace lowtide::oracles {

namespace {

using solve::partition::LayerDag;
using Members = std::set<std::size_t>;

struct Item {
  Members nodes;
  std::size_t weight = 1;
};

class Direct {
 public:
  Direct(const solve::partition::Layers& layers, std::size_t top_size, std::size_t block_size,
         double alpha)
      : layers_(layers), top_size_(top_size), block_size_(block_size), alpha_(alpha) {}

  std::set<Members> run() {
    for (std::size_t i = 0; i < layers_.dag.size(); ++i)
      items_.push_back({{i}, layers_.ops[i].size()});
    std::set<Members> blocks;
    while (weight_of_top(groups_alone()) > top_size_) {
      const std::vector<Members> groups = round();
      std::vector<Item> next;
      for (const Members& group : groups) {
        if (group.size() == 1) {
          next.push_back(items_[*group.begin()]);
          continue;
        }
        next.push_back({nodes_of(group), 2});
        blocks.insert(next.back().nodes);
      }
      if (next.size() == items_.size()) break;
      std::ranges::sort(next, {}, [](const Item& item) { return *item.nodes.begin(); });
      items_ = std::move(next);
    }
    return blocks;
  }

 private:
  std::vector<Members> groups_alone() const {
    std::vector<Members> groups;
    for (std::size_t i = 0; i < items_.size(); ++i) groups.push_back({i});
    return groups;
  }
  Members nodes_of(const Members& members) const {
    Members nodes;
    for (const std::size_t i : members)
      nodes.insert(items_[i].nodes.begin(), items_[i].nodes.end());
    return nodes;
  }
  std::size_t weight(const Members& members) const {
    std::size_t sum = 0;
    for (const std::size_t i : members) sum += items_[i].weight;
    return sum;
  }
  // Without what has no links at all.
  std::size_t weight_of_top(const std::vector<Members>& groups) const {
    std::size_t sum = 0;
    for (const Members& group : groups) {
      const std::size_t node = *items_[*group.begin()].nodes.begin();
      const bool linked = !layers_.dag.before[node].empty() || !layers_.dag.behind[node].empty();
      if (group.size() > 1)
        sum += 2;
      else if (linked)
        sum += weight(group);
    }
    return sum;
  }

  // By item: the items that it depends on.
  std::vector<Members> links() const {
    std::map<std::size_t, std::size_t> item_of;
    for (std::size_t i = 0; i < items_.size(); ++i)
      for (const std::size_t node : items_[i].nodes) item_of[node] = i;
    std::vector<Members> before(items_.size());
    for (const auto& [node, item] : item_of)
      for (const std::size_t other : layers_.dag.before[node])
        if (item_of[other] != item) before[item].insert(item_of[other]);
    return before;
  }

  // Whether every way to `end` passes `at`, by taking it out.
  static bool dominates(const std::vector<Members>& before, std::size_t at, std::size_t end) {
    std::vector<std::size_t> open{end};
    Members seen{end};
    while (!open.empty()) {
      const std::size_t item = open.back();
      open.pop_back();
      if (before[item].empty()) return false;
      for (const std::size_t other : before[item])
        if (other != at && seen.insert(other).second) open.push_back(other);
    }
    return true;
  }

  void add_flows(const std::vector<Members>& before, std::size_t end,
                 std::vector<Members>& candidates) const {
    std::optional<std::size_t> head;
    for (std::size_t at = end; at-- > 0 && !head;)
      if (dominates(before, at, end)) head = at;
    Members flow;
    std::vector<std::size_t> open{end};
    while (!open.empty()) {
      const std::size_t item = open.back();
      open.pop_back();
      if (item == head || !flow.insert(item).second) continue;
      open.insert(open.end(), before[item].begin(), before[item].end());
    }
    Members without = flow;
    without.erase(end);
    candidates.push_back(flow);
    candidates.push_back(without);
    if (!head) return;
    flow.insert(*head);
    without.insert(*head);
    candidates.push_back(flow);
    candidates.push_back(without);
  }

  void add_chains(const std::vector<Members>& before, std::vector<Members>& candidates) const {
    std::vector<Members> behind(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i)
      for (const std::size_t other : before[i]) behind[other].insert(i);
    const auto follows = [&](std::size_t i) {  // is it all that follows the one before it?
      return before[i].size() == 1 && behind[*before[i].begin()].size() == 1;
    };
    for (std::size_t first = 0; first < items_.size(); ++first) {
      if (follows(first)) continue;
      std::vector<std::size_t> chain{first};
      while (behind[chain.back()].size() == 1 && follows(*behind[chain.back()].begin()))
        chain.push_back(*behind[chain.back()].begin());
      const std::size_t sum = weight({chain.begin(), chain.end()});
      const std::size_t pieces = (sum + block_size_ - 1) / block_size_;
      const std::size_t most = (sum + pieces - 1) / pieces;
      Members piece;
      for (const std::size_t item : chain) {
        if (weight(piece) + items_[item].weight > most) {
          candidates.push_back(piece);
          piece.clear();
        }
        piece.insert(item);
      }
      candidates.push_back(piece);
    }
  }

  double score(const Members& members) const {
    const Members nodes = nodes_of(members);
    std::size_t size = 0;
    for (const std::size_t node : nodes) size += layers_.ops[node].size();
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < layers_.dag.values.size(); ++i) {
      const LayerDag::Value& value = layers_.dag.values[i];
      bool inside = false, outside = value.leaves;
      for (const std::size_t reader : layers_.dag.readers[i])
        (nodes.contains(reader) ? inside : outside) = true;
      if (nodes.contains(value.maker) ? outside : inside) bytes += value.bytes.count();
    }
    return static_cast<double>(bytes) * std::pow(static_cast<double>(size), alpha_);
  }

  // Lines 5 to 10.
  std::vector<Members> round() const {
    const std::vector<Members> before = links();
    std::vector<Members> candidates;
    add_chains(before, candidates);
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (before[i].size() > 1) add_flows(before, i, candidates);
    std::vector<Members> groups = groups_alone();
    const auto group_with = [&](std::size_t item) {
      return std::ranges::find_if(groups, [&](const Members& g) { return g.contains(item); });
    };
    const auto unfit = [&](const Members& candidate) {
      if (candidate.empty() || weight(candidate) > block_size_) return true;
      return std::ranges::includes(*group_with(*candidate.begin()), candidate);
    };
    while (true) {
      std::erase_if(candidates, unfit);
      if (candidates.empty() || weight_of_top(groups) <= top_size_) return groups;
      const Members best =
          *std::ranges::min_element(candidates, {}, [&](const Members& c) { return score(c); });
      std::erase_if(groups, [&](const Members& g) { return best.contains(*g.begin()); });
      groups.push_back(best);
      for (Members& candidate : candidates) {
        const bool apart =
            std::ranges::none_of(best, [&](std::size_t i) { return candidate.contains(i); });
        if (!apart) candidate.insert(best.begin(), best.end());
      }
    }
  }

  const solve::partition::Layers& layers_;
  std::size_t top_size_, block_size_;
  double alpha_;
  std::vector<Item> items_;  // in a topological order
};

}  // namespace

std::set<std::set<std::size_t>> direct_h_partition(const solve::partition::Layers& layers,
                                                   std::size_t top_size, std::size_t block_size,
                                                   double alpha) {
  return Direct(layers, top_size, block_size, alpha).run();
}

}  // namespace lowtide::oracles

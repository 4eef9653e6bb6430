// Problem: HiRemate's greedy choice of groups, in nearly linear time.
//
// Idea: candidates have at most block_size nodes, so each is found, scored and changed in time of
// its own size. A heap sorts them by score. When one becomes a group, only candidates that share a
// node with it change: they absorb the rest of the group, or become too large and are dropped. A
// candidate grows at most block_size times, and of equal candidates one is kept. A round ends when
// all candidates are used or dropped. The next round then examines only candidates that contain
// blocks of the last one.
//
// Source: J. Gusak et al., "HiRemate", ICML 2025, section 3.1 and appendix A. As in the released
// code (Rockmate 2.0.0), chains are candidates too, and the size in the score counts layers.
//
// Invariant: every link into a candidate comes from its head, and the head precedes all its nodes.
// The head is a node outside on which all nodes depend, or the first node. So groups are convex,
// also together, and naming them by their first nodes is topological.
//
// Loses: against choices that look further ahead than one merge. If few groups form, against a
// limit on the root. If everything depends on everything long before it, each round visits all
// predecessors of the one growing block.
#include "lowtide/solve/hierarchy/partition/h_rounds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <queue>
#include <tuple>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/solve/hierarchy/partition/h_network.h"

namespace lowtide::solve::partition {

namespace {

using Nodes = std::vector<Node>;

class Rounds {
 public:
  Rounds(const Layers& layers, const HSettings& settings, const std::function<bool()>& stop)
      : net_(layers),
        settings_(settings),
        stop_(stop),
        among_(net_.size()),
        chained_(net_.size()),
        group_of_(net_.size()),
        groups_(net_.size()),
        holders_(net_.size()),
        used_by_(net_.size()),
        met_by_(net_.size()),
        met_(net_.size()),
        number_(net_.size()) {
    for (Node node = 0; node < net_.size(); ++node) {
      // Nodes without links join nothing, and do not count in the network's size.
      const LayerDag& dag = layers.dag;
      if (!dag.before[node].empty() || !dag.behind[node].empty()) top_ += net_.weight(node);
      group_of_[node] = number_[node] = node;
      ends_.push_back(node);
    }
    links_ = ends_;
  }

  std::optional<Grown> run() {
    while (top_ > settings_.top_size) {
      if (!find_candidates() || !choose()) return std::nullopt;
      if (named_.empty()) break;
      end_round();
    }
    for (Node node = 0; node < net_.size(); ++node)
      if (net_.is_node(node)) grown_.top.push_back(number_[node]);
    return std::move(grown_);
  }

 private:
  struct Candidate {
    Nodes nodes;  // ascending; empty if dropped
    std::size_t layers = 0, weight = 0;
    std::uint32_t version = 0, merge = 0;  // the last merge that visited it
  };
  // Smallest score first; of equal scores the candidate that was found first.
  struct Entry {
    double score;
    std::uint32_t candidate, version;
    bool operator<(const Entry& other) const {
      return std::tie(other.score, other.candidate) < std::tie(score, candidate);
    }
  };

  bool stopped() { return stop_ && ++polls_ % 256 == 0 && stop_(); }

  bool find_candidates() {
    find_chains();
    for (Node& end : ends_) end = net_.node_of(end);
    sort_once(ends_);
    for (const Node end : std::exchange(ends_, {})) {
      find_flows(end);
      if (stopped()) return false;
    }
    return score_changed();
  }

  bool choose() {
    while (top_ > settings_.top_size && !heap_.empty()) {
      if (stopped()) return false;
      const Entry best = heap_.top();
      heap_.pop();
      const Candidate& chosen = candidates_[best.candidate];
      if (chosen.nodes.empty() || chosen.version != best.version) continue;
      merge(chosen.nodes);
      if (!score_changed()) return false;
    }
    return true;
  }

  static void sort_once(Nodes& nodes) {
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }

  void add_candidate(Nodes nodes) {
    Candidate candidate{std::move(nodes)};
    std::ranges::sort(candidate.nodes);
    for (const Node node : candidate.nodes) {
      candidate.layers += net_.layers(node);
      candidate.weight += net_.weight(node);
    }
    if (candidate.nodes.size() < 2 || candidate.weight > settings_.block_size) return;
    const auto index = static_cast<std::uint32_t>(candidates_.size());
    for (const Node node : candidate.nodes) {
      if (holders_[node].empty()) held_.push_back(node);
      holders_[node].push_back(index);
    }
    candidates_.push_back(std::move(candidate));
    changed_.push_back(index);
  }

  // Equation 1: the bytes that cross the border, times the size to the power of alpha, for all
  // changed candidates. Sorted by nodes, equal candidates are neighbours. They would change alike
  // from now on, so only the first is kept.
  bool score_changed() {
    std::ranges::sort(changed_, {}, [&](std::uint32_t index) {
      return std::pair<const Nodes&, std::uint32_t>(candidates_[index].nodes, index);
    });
    const Candidate* last = nullptr;
    for (const std::uint32_t index : std::exchange(changed_, {})) {
      if (stopped()) return false;
      Candidate& candidate = candidates_[index];
      if (last != nullptr && last->nodes == candidate.nodes) {
        candidate.nodes = {};
        continue;
      }
      last = &candidate;
      const double score = static_cast<double>(net_.interface(candidate.nodes).count()) *
                           std::pow(static_cast<double>(candidate.layers), settings_.alpha);
      heap_.push({score, index, candidate.version});
    }
    return true;
  }

  // The only successor of this node, if this node is its only predecessor; otherwise the node
  // itself.
  Node next(Node node) {
    const auto behind = net_.behind(node, 2);
    if (behind.size() != 1) return node;
    const Node other = behind.front();
    return net_.before(other, 2).size() == 1 ? other : node;
  }
  Node previous(Node node) {
    const auto before = net_.before(node, 2);
    if (before.size() != 1) return node;
    const Node other = before.front();
    return net_.behind(other, 2).size() == 1 ? other : node;
  }

  // The longest chains of such nodes, cut into pieces of about equal weight if they are too heavy.
  void find_chains() {
    for (Node& node : links_) node = net_.node_of(node);
    sort_once(links_);
    chained_.clear();
    std::vector<Nodes> chains;
    for (Node node : std::exchange(links_, {})) {
      if (chained_[node]) continue;
      for (Node before = previous(node); before != node; before = previous(node)) node = before;
      Nodes chain{node};
      chained_.add(node);
      for (Node behind = next(node); behind != chain.back(); behind = next(behind)) {
        chained_.add(behind);
        chain.push_back(behind);
      }
      if (chain.size() > 1) chains.push_back(std::move(chain));
    }
    std::ranges::sort(chains, {}, [](const Nodes& chain) { return chain.front(); });
    for (const Nodes& chain : chains) add_chain(chain);
  }

  void add_chain(const Nodes& chain) {
    std::size_t weight = 0;
    for (const Node node : chain) weight += net_.weight(node);
    const std::size_t pieces = (weight + settings_.block_size - 1) / settings_.block_size;
    const std::size_t most = (weight + pieces - 1) / pieces;
    Nodes piece;
    weight = 0;
    for (const Node node : chain) {
      if (weight + net_.weight(node) > most) {
        add_candidate(std::exchange(piece, {}));
        weight = 0;
      }
      piece.push_back(node);
      weight += net_.weight(node);
    }
    add_candidate(std::move(piece));
  }

  // The flow of `end`: all nodes on the paths to `end` from the nearest node that is on every such
  // path, with and without both ends. Nodes are visited backwards from `end`, the latest first; if
  // only one is waiting, it is on every path.
  void find_flows(Node end) {
    if (net_.before(end, 2).size() < 2) return;
    Nodes waiting;  // ascending
    Nodes flow{end};
    const bool found = take_back(flow, waiting);
    // A flow must be searched again when a visited node changes. A failed search ends with waiting
    // nodes that are all earlier than the visited ones, whatever they are merged into; but two of
    // them may be merged into one.
    for (const Node node : flow) used_by_[node].push_back(end);
    for (const Node node : waiting) (found ? used_by_ : met_by_)[node].push_back(end);
    met_[end] = found ? Nodes() : waiting;
    if (!found) return;
    std::ranges::reverse(flow);  // `end` is the last
    const Nodes without(flow.begin(), flow.end() - 1);
    add_candidate(flow);
    add_candidate(without);
    if (waiting.empty()) return;
    const auto with_head = [&](const Nodes& inside) {
      Nodes all(waiting);
      all.insert(all.end(), inside.begin(), inside.end());
      add_candidate(std::move(all));
    };
    with_head(flow);
    with_head(without);
  }

  // Whether the flow is small enough. Then `waiting` has its head, if there is one.
  bool take_back(Nodes& flow, Nodes& waiting) {
    bool open = false;       // a path begins in the flow
    std::size_t weight = 0;  // without both ends
    among_.clear();
    const auto wait_for = [&](std::span<const Node> before) {
      open = open || before.empty();
      for (const Node node : before) {
        if (!among_.add(node)) continue;
        waiting.insert(std::ranges::upper_bound(waiting, node), node);
        if (weight + waiting.size() > settings_.block_size + 1) return false;
      }
      return true;
    };
    // Give up at one more than may wait.
    const std::size_t most = settings_.block_size + 2;
    if (!wait_for(net_.before(flow.front(), most))) return false;
    while (!waiting.empty() && (open || waiting.size() > 1)) {
      const Node node = waiting.back();
      waiting.pop_back();
      flow.push_back(node);
      weight += net_.weight(node);
      if (weight > settings_.block_size || !wait_for(net_.before(node, most))) return false;
    }
    return true;
  }

  void merge(Nodes merged) {
    Node name = group_of_[merged.front()];
    for (const Node node : merged) name = std::min(name, group_of_[node]);
    std::vector<std::uint32_t> touched;
    ++merges_;
    for (const Node node : merged) {
      if (group_of_[node] != node) continue;  // once for each group, by its name
      top_ -= groups_[node].empty() ? net_.weight(node) : 2;
      groups_[node].clear();
      for (const std::uint32_t holder : std::exchange(holders_[node], {})) {
        Candidate& candidate = candidates_[holder];
        if (candidate.nodes.empty() || std::exchange(candidate.merge, merges_) == merges_) continue;
        if (take_in(candidate, holder, merged)) touched.push_back(holder);
      }
    }
    for (const Node node : merged) group_of_[node] = name;
    top_ += 2;
    holders_[name] = std::move(touched);
    held_.push_back(name);
    groups_[name] = std::move(merged);
    named_.push_back(name);
  }

  // Whether the candidate is still valid.
  bool take_in(Candidate& candidate, std::uint32_t index, const Nodes& merged) {
    Nodes& nodes = candidate.nodes;
    Nodes rest;
    std::ranges::set_difference(merged, nodes, std::back_inserter(rest));
    for (const Node node : rest) {
      candidate.layers += net_.layers(node);
      candidate.weight += net_.weight(node);
    }
    const bool used_up = nodes.size() + rest.size() == merged.size();
    if (used_up || candidate.weight > settings_.block_size) {
      nodes = {};
      return false;
    }
    if (rest.empty()) return true;
    const auto middle = nodes.insert(nodes.end(), rest.begin(), rest.end());
    std::ranges::inplace_merge(nodes, middle);
    ++candidate.version;
    changed_.push_back(index);
    return true;
  }

  // Merges groups into nodes.
  void end_round() {
    sort_once(named_);
    for (const Node name : std::exchange(named_, {})) {
      Nodes group = std::exchange(groups_[name], {});
      if (group.empty()) continue;  // absorbed by another group
      Nodes children;
      for (const Node node : group) {
        children.push_back(number_[node]);
        group_of_[node] = node;
        for (const Node end : std::exchange(used_by_[node], {})) ends_.push_back(end);
      }
      net_.merge(group, links_);
      look_again(group, name);
      number_[name] = static_cast<Node>(net_.size() + grown_.blocks.size());
      grown_.blocks.push_back(std::move(children));
      ends_.push_back(name);
      links_.push_back(name);
#if LOWTIDE_DEBUG_CHECKS
      for (const Node before : net_.before(name, net_.size()))
        check(before < name, "a block is not convex");
#endif
    }
    for (const Node node : std::exchange(held_, {})) holders_[node].clear();
    candidates_.clear();
    heap_ = {};
    merges_ = 0;
  }

  // For flows that contain two or more nodes of the group. The longest list can be skipped: flows
  // that are only in it contain one node.
  // who is in it alone met one.
  void look_again(const Nodes& group, Node name) {
    const Node longest =
        *std::ranges::max_element(group, {}, [&](Node n) { return met_by_[n].size(); });
    std::swap(met_by_[name], met_by_[longest]);
    for (const Node node : group) {
      if (node == name) continue;
      for (const Node end : std::exchange(met_by_[node], {})) {
        const auto same = [&](Node met) { return net_.node_of(met) == name; };
        if (std::ranges::count_if(met_[end], same) > 1)
          ends_.push_back(end);
        else
          met_by_[name].push_back(end);
      }
    }
  }

  HNetwork net_;
  const HSettings& settings_;
  const std::function<bool()>& stop_;
  std::size_t polls_ = 0;
  std::size_t top_ = 0;  // weight of the network, with groups as blocks
  Grown grown_;
  Marks among_, chained_;
  // State of a round. A group is named by its first node; a node that is in no group is named by
  // itself.
  std::vector<Node> group_of_;
  std::vector<Nodes> groups_;
  std::vector<std::vector<std::uint32_t>> holders_;  // by group: the candidates that contain it
  Nodes named_, held_;                               // names of groups; names with candidates
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> changed_;  // candidates without a score
  std::priority_queue<Entry> heap_;
  std::uint32_t merges_ = 0;
  // State across rounds.
  // used_by_: by node, the ends of flows that contain it or have it as head. met_by_: by node, the
  // ends of failed searches in which it waited. met_: by end, the nodes that waited.
  std::vector<Nodes> used_by_, met_by_, met_;
  Nodes ends_, links_;        // nodes at which flows and chains must be searched
  std::vector<Node> number_;  // by node: its number in Grown
};

}  // namespace

std::optional<Grown> grow_blocks(const Layers& layers, const HSettings& settings,
                                 const std::function<bool()>& stop) {
  return Rounds(layers, settings, stop).run();
}

}  // namespace lowtide::solve::partition

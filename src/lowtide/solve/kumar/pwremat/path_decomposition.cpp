// Problem: a path decomposition of small width. Idea: an order of the nodes is one; build an order
// greedily from one end, or take the given one, and improve it in small steps.
//
// Source: ours. That the least vertex separation of all orders is the path-width is N.
// Kinnersley's, "The vertex separation number of a graph equals its path-width", 1992.
//
// Invariant: two neighbours are together in the bag of the later one.
//
// Loses: a greedy order that follows one branch of a graph holds the other branches open.
#include "lowtide/solve/kumar/pwremat/path_decomposition.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

namespace lowtide::solve::kumar::pwremat {

namespace {
std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
}  // namespace

std::vector<std::vector<Node>> PathDecomposition::bag_contents() const {
  std::vector<std::vector<Node>> contents(at(bags));
  for (std::size_t i = 0; i < first.size(); ++i)
    for (std::int32_t bag = first[i]; bag <= last[i]; ++bag)
      contents[at(bag)].push_back(static_cast<Node>(i));
  return contents;
}

std::size_t PathDecomposition::largest_bag() const {
  std::vector<std::int64_t> change(at(bags) + 1, 0);
  for (std::size_t i = 0; i < first.size(); ++i) {
    ++change[at(first[i])];
    --change[at(last[i]) + 1];
  }
  std::int64_t size = 0, largest = 0;
  for (std::int64_t each : change) largest = std::max(largest, size += each);
  return static_cast<std::size_t>(largest);
}

PathDecomposition from_order(const Neighbours& graph, std::span<const Node> order) {
  PathDecomposition path;
  path.first.resize(order.size());
  path.last.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    path.first[at(order[i])] = path.last[at(order[i])] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (Node other : graph[i]) path.last[i] = std::max(path.last[i], path.first[at(other)]);
  // The next bag contains a bag in which no node ends.
  std::vector<std::int32_t> number(order.size(), 0);
  for (std::int32_t last : path.last) number[at(last)] = 1;
  for (std::int32_t& each : number) each = std::exchange(path.bags, path.bags + each);
  for (std::size_t i = 0; i < order.size(); ++i) {
    path.first[i] = number[at(path.first[i])];
    path.last[i] = number[at(path.last[i])];
  }
  return path;
}

std::vector<Node> narrow_order(const Neighbours& graph, Node start,
                               const std::function<bool(std::int64_t)>& spend) {
  std::vector<Node> order;
  std::vector<std::size_t> open(graph.size());  // neighbours that are not in the order yet
  std::vector<std::uint8_t> taken(graph.size(), 0);
  for (std::size_t i = 0; i < graph.size(); ++i) open[i] = graph[i].size();
  // The number of open nodes that a node adds, and how long it has been a candidate.
  const auto growth = [&](Node node) {
    std::int64_t result = open[at(node)] > 0 ? 1 : 0;
    for (Node other : graph[at(node)])
      if (taken[at(other)] != 0 && open[at(other)] == 1) --result;
    return result;
  };
  using Entry = std::tuple<std::int64_t, std::int64_t, Node>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::vector<std::int64_t> reached(graph.size(), -1), key(graph.size(), 0);
  const auto offer = [&](Node node) {
    if (reached[at(node)] < 0) reached[at(node)] = static_cast<std::int64_t>(order.size());
    key[at(node)] = growth(node);
    queue.emplace(key[at(node)], reached[at(node)], node);
  };
  Node next_start = 0;
  offer(start);
  while (order.size() < graph.size()) {
    if (queue.empty()) {
      while (taken[at(next_start)] != 0) ++next_start;
      offer(next_start);
    }
    const auto [expected, since, node] = queue.top();
    queue.pop();
    if (taken[at(node)] != 0 || expected != key[at(node)]) continue;
    taken[at(node)] = 1;
    order.push_back(node);
    if (spend(1 + static_cast<std::int64_t>(graph[at(node)].size()) / 4)) return {};
    for (Node other : graph[at(node)]) {
      --open[at(other)];
      if (taken[at(other)] == 0) {
        offer(other);
      } else if (open[at(other)] == 1) {
        // Its last neighbour closes it.
        for (Node last : graph[at(other)])
          if (taken[at(last)] == 0) offer(last);
      }
    }
    if (open[at(node)] == 1)
      for (Node last : graph[at(node)])
        if (taken[at(last)] == 0) offer(last);
  }
  return order;
}

void improve_order(const Neighbours& graph, std::vector<Node>& order, int passes, Random& random,
                   const std::function<bool(std::int64_t)>& spend) {
  const std::size_t count = order.size();
  std::vector<std::size_t> position(count);
  for (std::size_t i = 0; i < count; ++i) position[at(order[i])] = i;
  // An exchange of the nodes at `here` and after it changes the number of open nodes only by these
  // two nodes and their neighbours.
  const auto waits = [&](Node node, std::size_t here) {
    return std::any_of(graph[at(node)].begin(), graph[at(node)].end(),
                       [&](Node other) { return position[at(other)] > here; });
  };
  const auto waiting = [&](std::size_t here) {
    std::int64_t result = 0;
    for (Node node : {order[here], order[here + 1]}) {
      if (position[at(node)] <= here && waits(node, here)) ++result;
      for (Node other : graph[at(node)])
        if (position[at(other)] < here && waits(other, here)) ++result;
    }
    return result;
  };
  const auto swap = [&](std::size_t here) {
    std::swap(order[here], order[here + 1]);
    position[at(order[here])] = here;
    position[at(order[here + 1])] = here + 1;
  };
  for (int pass = 0; pass < passes; ++pass) {
    bool changed = false;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const std::size_t here = pass % 2 == 0 ? i : count - 2 - i;
      const auto links = graph[at(order[here])].size() + graph[at(order[here + 1])].size();
      if (links > 64) continue;
      if (spend(1 + static_cast<std::int64_t>(links) / 8)) return;
      const std::int64_t before = waiting(here);
      swap(here);
      const std::int64_t after = waiting(here);
      if (after > before || (after == before && random.chance(0.5)))
        swap(here);
      else
        changed |= after < before;
    }
    if (!changed && pass > 1) return;
  }
}

}  // namespace lowtide::solve::kumar::pwremat

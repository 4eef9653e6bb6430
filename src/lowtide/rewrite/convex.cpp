#include "lowtide/rewrite/convex.h"

#include <algorithm>

namespace lowtide::rewrite {

Members members_of(const Graph& graph, std::span<const OpId> ops) {
  Members members(graph.op_count(), 0);
  for (const OpId op : ops) members[op.index()] = 1;
  return members;
}

// For each op the most times that a path to it leaves the set. Paths within a set of equal numbers
// stay in it, since a path that returns has left once more.
std::vector<std::vector<OpId>> convex_sets(const Graph& graph, const Members& among,
                                           const Members& before) {
  const auto in_parts = [&](OpId op) { return among[op.index()] != 0 && before[op.index()] == 0; };
  std::vector<std::size_t> left(graph.op_count(), 0);
  std::vector<std::vector<OpId>> sets;
  for (const OpId op : graph.order()) {
    const bool inside = among[op.index()] != 0;
    std::size_t& count = left[op.index()];
    for (const OpId earlier : graph.predecessors(op)) {
      if (inside && !in_parts(op) && in_parts(earlier)) continue;
      // An op outside stores the number of the ops that depend on it.
      count = std::max(count, left[earlier.index()] + (in_parts(earlier) && !inside ? 1 : 0));
    }
    if (!inside) continue;
    if (sets.size() <= count) sets.resize(count + 1);
    sets[count].push_back(op);
  }
  std::erase_if(sets, [](const auto& set) { return set.empty(); });
  return sets;
}

Members hull(const Graph& graph, const Members& of) {
  Members below = of, above = of;
  const auto order = graph.order();
  for (const OpId op : order)
    for (const OpId before : graph.predecessors(op))
      if (below[before.index()] != 0) below[op.index()] = 1;
  for (auto op = order.rbegin(); op != order.rend(); ++op)
    for (const OpId next : graph.successors(*op))
      if (above[next.index()] != 0) above[op->index()] = 1;
  for (std::size_t i = 0; i < below.size(); ++i) below[i] &= above[i];
  return below;
}

}  // namespace lowtide::rewrite

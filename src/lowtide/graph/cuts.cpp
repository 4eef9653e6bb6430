// Problem: find the positions at which a graph falls apart into two graphs that share one op, or
// one tensor.
//
// Idea: at position p of any topological order, all earlier ops reach the op at p if and only if
// each of them has a successor at or before p: following such successors, the positions rise until
// they end at p. That is one comparison of p with the largest "first successor" so far, and
// likewise backwards. For tensors, add at the producer and subtract at the last reader, both a
// count and the sum of the indices: if the count is 1, the sum is the tensor.
//
// Source: the articulation ops of T. Chen et al., "Training deep nets with sublinear memory cost",
// 2016, derived from an order instead of by a search.
//
// Invariant: the result of cut_ops does not depend on the order used.
//
// Loses: a graph with one op beside everything else (a statistic of a parameter, a counter) has no
// cut op, although it nearly falls apart. tensor_cuts ignores such ops.
// all, though it nearly falls apart; tensor_cuts does not mind such ops.
#include "lowtide/graph/cuts.h"

#include <algorithm>
#include <cstdint>

#include "lowtide/base/error.h"

namespace lowtide {

std::vector<OpId> cut_ops(const Graph& graph) {
  const auto order = graph.order();
  const std::size_t n = order.size();
  std::vector<std::uint8_t> reached_by_all(n, 0);
  std::size_t wait = 0;  // largest position of the first successor, over all ops so far
  for (std::size_t at = 0; at < n; ++at) {
    reached_by_all[at] = wait <= at ? 1 : 0;
    std::size_t nearest = n;
    for (OpId next : graph.successors(order[at])) nearest = std::min(nearest, graph.position(next));
    wait = std::max(wait, nearest);
  }
  std::vector<OpId> cuts;
  std::size_t back = n;  // smallest position of the last predecessor, over all later ops
  for (std::size_t at = n; at-- > 0;) {
    // One past the position, since 0 stands for "none".
    if (reached_by_all[at] != 0 && back >= at + 1) cuts.push_back(order[at]);
    std::size_t nearest = 0;
    for (OpId before : graph.predecessors(order[at]))
      nearest = std::max(nearest, graph.position(before) + 1);
    back = std::min(back, nearest);
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

std::vector<TensorCut> tensor_cuts(const Graph& graph, std::size_t first, std::size_t last) {
  check(first <= last && last <= graph.op_count(), "tensor_cuts: a range within the order");
  struct Change {
    std::int64_t count = 0, sum = 0;
  };
  std::vector<Change> change(last - first + 1);
  for (std::size_t at = first; at < last; ++at) {
    for (TensorId made : graph.outputs(graph.order()[at])) {
      std::size_t last_read = at;
      for (OpId reader : graph.consumers(made))
        if (graph.position(reader) < last) last_read = std::max(last_read, graph.position(reader));
      const auto index = static_cast<std::int64_t>(made.index());
      Change& begin = change[at + 1 - first];
      Change& end = change[last_read + 1 - first];
      begin.count += 1, begin.sum += index;
      end.count -= 1, end.sum -= index;
    }
  }
  std::vector<TensorCut> cuts;
  Change crossing;
  for (std::size_t at = first + 1; at < last; ++at) {
    crossing.count += change[at - first].count;
    crossing.sum += change[at - first].sum;
    if (crossing.count == 1) cuts.push_back({at, TensorId(static_cast<std::size_t>(crossing.sum))});
  }
  return cuts;
}

}  // namespace lowtide

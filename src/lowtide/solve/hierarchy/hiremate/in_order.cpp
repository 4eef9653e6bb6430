// A sequence is legal if first computations follow the order and each op is computed before its
// readers: tensors are held from their last computation to each use.
#include "lowtide/solve/hierarchy/hiremate/in_order.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::hierarchy {

std::vector<OpId> in_given_order(const Problem& problem, std::span<const OpId> sequence) {
  const Graph& graph = problem.graph;
  if (follows_order(graph, sequence)) return {sequence.begin(), sequence.end()};
  // The recomputations before each first computation, and after the last.
  std::vector<std::vector<OpId>> again(graph.op_count() + 1);
  std::vector<std::uint8_t> seen(graph.op_count(), 0);
  std::vector<OpId> waiting;
  for (const OpId op : sequence) {
    if (std::exchange(seen[op.index()], std::uint8_t{1}) != 0)
      waiting.push_back(op);
    else
      again[graph.position(op)] = std::exchange(waiting, {});
  }
  again.back() = std::move(waiting);
  std::vector<OpId> ordered;
  std::fill(seen.begin(), seen.end(), std::uint8_t{0});
  for (std::size_t at = 0; at <= graph.op_count(); ++at) {
    for (const OpId op : again[at])
      if (seen[op.index()] != 0) ordered.push_back(op);
    if (at == graph.op_count()) break;
    ordered.push_back(graph.order()[at]);
    seen[graph.order()[at].index()] = 1;
  }
  return without_unread(problem, ordered);
}

}  // namespace lowtide::solve::hierarchy

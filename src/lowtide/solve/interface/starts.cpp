// The best start plan is the first: the context keeps them in that order.
#include "lowtide/solve/interface/starts.h"

#include <utility>

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve {

std::vector<std::vector<OpId>> orders_to_try(const Context& context) {
  const Graph& graph = context.problem().graph;
  std::vector<std::vector<OpId>> orders;
  orders.emplace_back(graph.order().begin(), graph.order().end());
  if (context.problem().order == Order::given || context.starts().empty()) return orders;
  std::vector<OpId> first = first_computations(graph, computations(context.starts().front()));
  if (first != orders.front()) orders.push_back(std::move(first));
  return orders;
}

}  // namespace lowtide::solve

// A copy is made only where something has to go.
#include "lowtide/driver/allowed_graph.h"

#include <utility>

namespace lowtide::driver {

namespace {

bool may_recompute(const Graph& graph) {
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    if (graph.recomputable(OpId(i))) return true;
  return false;
}

}  // namespace

AllowedGraph::AllowedGraph(const Graph& graph, const Techniques& techniques) : original_(graph) {
  const bool once = !techniques.recompute && may_recompute(graph);
  const bool apart = !techniques.in_place && graph.has_overwrites();
  if (once || apart) changed_ = graph;
  if (once) changed_ = std::move(*changed_).without_recomputation();
  if (apart) changed_ = std::move(*changed_).without_in_place();
}

Problem AllowedGraph::problem(const Problem& problem) const {
  Problem allowed = with_graph(problem, graph());
  if (!problem.techniques.offload) allowed.machine.reset();
  return allowed;
}

}  // namespace lowtide::driver

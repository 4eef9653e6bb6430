// The graph is copied only if something must be removed.
#include "lowtide/driver/allowed_graph.h"

#include <utility>

namespace lowtide::driver {

namespace {

bool may_recompute(const Graph& graph) {
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    if (graph.recomputable(OpId(i))) return true;
  return false;
}

std::optional<Graph> changed(const Graph& graph, const Techniques& techniques) {
  const bool once = !techniques.recompute && may_recompute(graph);
  const bool apart = !techniques.in_place && graph.has_overwrites();
  if (!once && !apart) return std::nullopt;
  Graph changed = graph;
  if (once) changed = std::move(changed).without_recomputation();
  if (apart) changed = std::move(changed).without_in_place();
  return changed;
}

}  // namespace

AllowedGraph::AllowedGraph(const Problem& original)
    : changed_(changed(original.graph, original.techniques)),
      problem_(with_graph(original, changed_ ? *changed_ : original.graph)) {
  if (!original.techniques.offload) problem_.machine.reset();
}

}  // namespace lowtide::driver

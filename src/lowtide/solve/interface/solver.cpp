// The support that does not depend on the solver.
#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve {

namespace {

// A tensor at home on the host; the graph has one.
TensorId on_host(const Graph& graph) {
  std::size_t i = 0;
  while (!graph.on_host(TensorId(i))) ++i;
  return TensorId(i);
}

}  // namespace

Support support_of(const Solver& solver, const Problem& problem) {
  const Graph& graph = problem.graph;
  if (!graph.has_tensors_on_host()) return solver.supports(problem);
  const std::string begins = "the host, where " + graph.label(on_host(graph)) + " begins";
  if (!problem.machine) return Support::no("there is no link from " + begins);
  if (!solver.traits().has(Trait::transfers))
    return Support::no("it plans no copies from " + begins);
  return solver.supports(problem);
}

}  // namespace lowtide::solve

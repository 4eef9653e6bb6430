// What cannot be asked, and the same question of another graph.
#include "lowtide/plan/problem.h"

#include <string>

#include "lowtide/base/error.h"

namespace lowtide {

void check_live_limits(const Problem& problem) {
  const std::size_t ops = problem.graph.op_count();
  for (std::size_t i = 0; i < problem.live_limits.size(); ++i) {
    const LiveLimit& limit = problem.live_limits[i];
    const auto refuse = [&](const std::string& why) {
      throw InputError("live_limits/" + std::to_string(i), why);
    };
    if (!limit.op.valid() || limit.op.index() >= ops)
      refuse("there is no such op; the graph has " + std::to_string(ops));
    if (limit.most < Bytes(0))
      refuse("the limit of " + problem.graph.label(limit.op) +
             " is negative: " + std::to_string(limit.most.count()));
    if (problem.objective != Objective::least_time)
      refuse("what may be live during an op can be limited for least time within a budget only");
  }
}

void require_plannable(const Graph& graph) {
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.on_host(TensorId(i)))
      throw InputError("/tensors/" + std::to_string(i) + "/home",
                       graph.label(TensorId(i)) +
                           ": its home is the host, and no solver plans transfers yet; leave its "
                           "\"home\" out, or bring a plan of your own to verify");
}

Problem with_graph(const Problem& problem, const Graph& graph) {
  return {.graph = graph,
          .budget = problem.budget,
          .time_limit = problem.time_limit,
          .objective = problem.objective,
          .order = problem.order,
          .machine = problem.machine,
          .techniques = problem.techniques,
          .host_budget = problem.host_budget,
          .live_limits = problem.live_limits,
          .transforms = problem.transforms};
}

}  // namespace lowtide

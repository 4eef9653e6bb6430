// Refuses problems that cannot be planned, and moves a problem to another graph.
#include "lowtide/plan/problem.h"

#include <string>

#include "lowtide/base/error.h"

namespace lowtide {

void require_plannable(const Problem& problem) {
  const Graph& graph = problem.graph;
  if (!graph.has_tensors_on_host()) return;
  Bytes on_host;
  Ticks copies;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.on_host(id)) continue;
    on_host += graph.bytes(id);
    const auto refuse = [&](const std::string& why) {
      throw InputError("/tensors/" + std::to_string(i) + "/home",
                       graph.label(id) + ": its home is the host, and " + why);
    };
    if (!problem.machine) refuse("no link brings it to the device; name one with device or link");
    if (!problem.techniques.offload)
      refuse("the techniques leave out \"offload\", which would bring it to the device");
    try {
      for (const Link& link : {problem.machine->host_to_device, problem.machine->device_to_host})
        copies = checked_add(copies, link.transfer_time(graph.bytes(id)));
    } catch (const OverflowError&) {
      copies = Ticks::max();
    }
    if (copies > Ticks::max() - graph.total_time() - graph.total_time())
      refuse("the link takes longer than can be counted to bring it and take it back");
  }
  if (problem.host_budget && on_host > *problem.host_budget)
    throw InputError("host_budget", std::to_string(problem.host_budget->count()) +
                                        " bytes are less than the " +
                                        std::to_string(on_host.count()) +
                                        " of the tensors whose home is the host");
}

Problem with_graph(const Problem& problem, const Graph& graph) {
  return {.graph = graph,
          .budget = problem.budget,
          .time_limit = problem.time_limit,
          .objective = problem.objective,
          .order = problem.order,
          .machine = problem.machine,
          .techniques = problem.techniques,
          .host_budget = problem.host_budget};
}

}  // namespace lowtide

// Makes questions from terms, and refuses invalid live limits.
#include "lowtide/plan/question.h"

#include <string>

#include "lowtide/base/error.h"

namespace lowtide {

Question question_on(const Graph& graph, Bytes budget, const Terms& terms) {
  return {.problem = {.graph = graph,
                      .budget = budget,
                      .order = terms.order,
                      .machine = terms.machine,
                      .techniques = terms.techniques,
                      .host_budget = terms.host_budget},
          .transforms = terms.transforms,
          .prices = terms.prices};
}

void check_live_limits(const Problem& problem, std::span<const LiveLimit> limits) {
  const std::size_t ops = problem.graph.op_count();
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const LiveLimit& limit = limits[i];
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

}  // namespace lowtide

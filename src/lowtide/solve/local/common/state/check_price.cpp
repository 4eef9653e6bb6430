// Compares the search's own pricing with `sim`, which alone defines the cost of plans.
#include <algorithm>
#include <cmath>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/local/common/state/state.h"

namespace lowtide::solve::local {

void State::check_price() const {
  const Graph& graph = network_.graph;
  const Plan plan = plan_from_events(graph, sequence(), network_.machine);
  const Timeline timeline = simulate(graph, plan);
  check(!timeline.violation, "search made a sequence that cannot be run: " +
                                 (timeline.violation ? timeline.violation->reason : ""));
  check(static_cast<double>(timeline.cost.duration.count()) == duration(),
        "search prices time otherwise than sim");
  if (network_.transfers)
    check(static_cast<double>(timeline.cost.host_peak.count()) == host_,
          "search counts bytes on the host otherwise than sim");
  double over = 0;
  const auto see = [&](Item item, Bytes live) {
    const double bytes = static_cast<double>(live.count()) - network_.fixed;
    check(profile_.at(slot(item)) == bytes, "search prices bytes otherwise than sim");
    over += std::max(0.0, bytes - network_.budget);
  };
  Item item = first_of(network_.source());
  see(item, timeline.start);
  // Holds are no steps of the plan: their bytes are those between two steps.
  const auto next = [&] {
    for (;;) {
      item = item_after(slot(item));
      if (!network_.is_hold(node(item))) return item;
      over += std::max(0.0, profile_.at(slot(item)) - network_.budget);
    }
  };
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    const Step& made = plan.steps[step];
    if (!made.is_compute() && made.kind != StepKind::prefetch) continue;
    item = next();
    see(item, timeline.live[step]);
  }
  Bytes end = graph.resident();
  for (const TensorId id : live_tensors(graph, plan, plan.steps.size())) end += graph.bytes(id);
  see(next(), end);
  check(std::abs(profile_.over() - over) <= 1e-9 * (1 + over),
        "search adds up bytes over the budget otherwise than sim");
}

}  // namespace lowtide::solve::local

// The one thing that the search must not do is to price plans in a way of its own.
#include <algorithm>
#include <cmath>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/search/state/state.h"

namespace lowtide::solve::search {

void State::check_price() const {
  const Graph& graph = network_.graph;
  const Plan plan = plan_from_sequence(graph, sequence());
  const Timeline timeline = simulate(graph, plan);
  check(!timeline.violation, "search made a sequence that cannot be run: " +
                                 (timeline.violation ? timeline.violation->reason : ""));
  check(static_cast<double>(timeline.cost.duration.count()) == duration_,
        "search prices time otherwise than sim");
  double over = 0;
  const auto see = [&](Item item, Bytes live) {
    const double bytes = static_cast<double>(live.count()) - network_.fixed;
    check(profile_.at(slot(item)) == bytes, "search prices bytes otherwise than sim");
    over += std::max(0.0, bytes - network_.budget);
  };
  Item item = first_of(network_.source());
  see(item, timeline.start);
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    if (!plan.steps[step].is_compute()) continue;
    item = item_after(slot(item));
    see(item, timeline.live[step]);
  }
  Bytes end = graph.resident();
  for (const TensorId id : live_tensors(graph, plan, plan.steps.size())) end += graph.bytes(id);
  see(item_after(slot(item)), end);
  check(std::abs(profile_.over() - over) <= 1e-9 * (1 + over),
        "search adds up bytes over the budget otherwise than sim");
}

}  // namespace lowtide::solve::search

// What drops gaps by the price of a byte: where nothing else finds a plan, and near the search
// where others do.
#include "lowtide/solve/search/drop.h"

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/evict/evict.h"

#include "solve/run_solver.h"
#include "support/scale.h"

namespace lowtide {
namespace {

double overhead(const solve::Solver& solver, const Graph& graph, int percent) {
  const Bytes fixed = graph.input_bytes() + graph.resident();
  const Problem problem{.graph = graph,
                        .budget = fixed + Bytes((own_peak(graph) - fixed).count() / 100 * percent),
                        .order = Order::given};
  const Outcome outcome = run_solver(solver, problem);
  return outcome.plan ? overhead_percent(outcome.cost.duration, graph.total_time()) : 1e9;
}

TEST_CASE(
    "drop: less time lost than by eviction on networks, and plans where eviction finds none") {
  const auto drop = solve::search::make_drop();
  const auto evict = solve::evict::make_evict();
  for (const std::uint64_t seed : {51, 52}) {
    if (kSanitized && seed != 51) continue;
    CAPTURE(seed);
    const Graph unet = generate("unet", 1000, seed), layered = generate("layered", 2000, seed);
    CHECK(overhead(*drop, unet, 35) < 0.9 * overhead(*evict, unet, 35));
    CHECK(overhead(*evict, layered, 85) == 1e9);
    CHECK(overhead(*drop, layered, 85) < 15);
  }
}

}  // namespace
}  // namespace lowtide

#include "solve/search_fixture.h"

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/random_graph.h"
#include "support/random_plan.h"

namespace lowtide::solve::search {

namespace {

Graph some_graph(Random& random) {
  const bool plain = random.chance(0.3);
  RandomGraphSettings settings = plain ? RandomGraphSettings::plain(0) : RandomGraphSettings{};
  settings.ops = random.chance(0.1) ? random.below(4) : 4 + random.below(60);
  settings.several_outputs = 0.3;
  settings.releasable = 0.5;
  return random_graph(random, settings);
}

Problem some_problem(Random& random, const Graph& graph) {
  const std::int64_t own = own_peak(graph).count();
  const std::int64_t fixed = (graph.resident() + graph.input_bytes()).count();
  return {.graph = graph,
          .budget = Bytes(std::max(fixed, own * random.between(40, 110) / 100)),
          .order = random.chance(0.5) ? Order::given : Order::free};
}

}  // namespace

Fixture::Fixture(Random& random)
    : graph(some_graph(random)),
      problem(some_problem(random, graph)),
      network(problem),
      state(network) {
  const bool restless = random.chance(0.5);
  const auto order = graph.order();
  state.load(restless ? sequence_of(random_plan(random, graph,
                                                {.order = problem.order, .transfers = false}))
                      : std::vector<OpId>(order.begin(), order.end()));
}

void Fixture::check_all() const {
  state.check_invariants();
  state.check_price();
  const auto sequence = state.sequence();
  const Plan plan = plan_from_sequence(graph, sequence);
  Problem unlimited = problem;
  unlimited.budget = Bytes::max();
  const Verdict verdict = verify(unlimited, plan);
  CHECK_MESSAGE(verdict.ok, (verdict.violation ? verdict.violation->reason : ""));
  CHECK(static_cast<double>(verdict.cost.duration.count()) == state.duration());
  const double fixed = static_cast<double>(problem.budget.count()) - network.budget;
  CHECK(static_cast<double>(verdict.cost.peak.count()) == state.profile().peak() + fixed);
  CHECK(state.within() == (verdict.cost.peak <= problem.budget));
}

Snapshot::Snapshot(const State& state)
    : sequence(state.sequence()),
      duration(state.duration()),
      over(state.profile().over()),
      peak(state.profile().peak()),
      items(state.item_count()),
      repeats(state.repeat_count()) {}

}  // namespace lowtide::solve::search

#include "solve/search_fixture.h"

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/random_graph.h"
#include "support/random_plan.h"

namespace lowtide::solve::local {

namespace {

Graph some_graph(Random& random, bool transfers) {
  const bool plain = random.chance(0.3);
  RandomGraphSettings settings = plain ? RandomGraphSettings::plain(0) : RandomGraphSettings{};
  settings.ops = random.chance(0.1) ? random.below(4) : 4 + random.below(60);
  settings.several_outputs = 0.3;
  settings.releasable = 0.5;
  settings.barrier = 0.06;
  if (transfers) settings.on_host = 0.3;
  Graph graph = random_graph(random, settings);
  // Those the search leaves alone.
  const auto stays_from_host = [&] {
    for (std::size_t i = 0; i < graph.tensor_count(); ++i)
      if (graph.on_host(TensorId(i)) && graph.stays(TensorId(i))) return true;
    return false;
  };
  while (stays_from_host()) graph = random_graph(random, settings);
  return graph;
}

Problem some_problem(Random& random, const Graph& graph, bool transfers) {
  const std::int64_t own = own_peak(graph).count();
  const std::int64_t fixed = (graph.resident() + graph.input_bytes()).count();
  Problem problem{.graph = graph,
                  .budget = Bytes(std::max(fixed, own * random.between(40, 110) / 100)),
                  .order = random.chance(0.5) ? Order::given : Order::free};
  if (transfers) problem.machine = random_machine(random);
  return problem;
}

// A plan for the problem's own machine.
std::vector<Event> some_events(Random& random, const Problem& problem) {
  const Graph& graph = problem.graph;
  const bool transfers = problem.machine.has_value();
  for (;;) {
    const Plan plan = random_plan(random, graph, {.order = problem.order, .transfers = transfers});
    // Without a walk that came to its end it may read what it has not fetched.
    if (!simulate(graph, plan).violation) return events_of(graph, plan);
  }
}

}  // namespace

Fixture::Fixture(Random& random, bool transfers)
    : graph(some_graph(random, transfers)),
      problem(some_problem(random, graph, transfers)),
      network(problem),
      state(network) {
  const bool restless = transfers || random.chance(0.5);
  state.load(restless ? some_events(random, problem) : events_from(graph.order()));
}

void Fixture::check_all() const {
  state.check_invariants();
  state.check_price();
  const auto sequence = state.sequence();
  const Plan plan = plan_from_events(graph, sequence, problem.machine);
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
      host(state.host_bytes()),
      items(state.item_count()),
      repeats(state.repeat_count()) {}

}  // namespace lowtide::solve::local

// What a problem demands beyond the rules: order, budget, time limit, machine. And random plans,
// legal and mutated, on which verify and its own parts must be of one mind; a second verifier
// judges the same plans (oracles/test_agreement.py).
#include "lowtide/sim/verify.h"

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/sim/budget.h"

#include "support/judge.h"
#include "support/mutated_plan.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

Graph chain() {
  return Sketch({10, 20, 30, 5})
      .op({0}, {1}, 10)
      .op({1}, {2}, 100)
      .op({1, 2}, {3}, 7)
      .keep({3})
      .graph();
}

TEST_CASE("verify: the budget is inclusive; a violation names the step at the peak") {
  const Graph graph = chain();
  CHECK(judge({.graph = graph, .budget = Bytes(65)}, steps("c0 c1 c2")).ok);
  const Verdict verdict = judge({.graph = graph, .budget = Bytes(64)}, steps("c0 c1 c2"));
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.violation->step == 2);
  CHECK(verdict.cost.peak == Bytes(65));
  CHECK_FALSE(judge({.graph = graph, .budget = Bytes(9)}, steps("c0 c1 c2")).ok);
}

TEST_CASE("verify: the start alone may be beyond the budget") {
  const Graph graph = Sketch({50, 8}).op({}, {1}).releasable({0}).keep({1}).graph();
  CHECK(judge({.graph = graph, .budget = Bytes(50)}, steps("f0 c0")).ok);
  CHECK_FALSE(judge({.graph = graph, .budget = Bytes(49)}, steps("f0 c0")).ok);
}

TEST_CASE("verify: workspace and prefetches count for the budget") {
  const Graph scratch = Sketch({10, 20}).op({0}, {1}).workspace(100).keep({1}).graph();
  CHECK(judge({.graph = scratch, .budget = Bytes(130)}, steps("c0")).ok);
  CHECK_FALSE(judge({.graph = scratch, .budget = Bytes(129)}, steps("c0")).ok);
  const Graph away = Sketch({20, 1}).op({}, {1}).keep({}).graph();
  // 20; away; 1; back: 21
  CHECK(judge({.graph = away, .budget = Bytes(21), .machine = machine_by_hand()},
              steps("o0 f0 c0 p0"))
            .ok);
  CHECK_FALSE(judge({.graph = away, .budget = Bytes(20), .machine = machine_by_hand()},
                    steps("o0 f0 c0 p0"))
                  .ok);
}

TEST_CASE("verify: the given order holds for first computations") {
  const Sketch sketch = Sketch({10, 20, 5}).op({0}, {1}).op({0}, {2}).keep({1, 2});
  const Graph listed = sketch.graph(), turned = Sketch(sketch).order({1, 0}).graph();
  const auto ok = [](const Graph& graph, Order order, std::string_view words) {
    return judge({.graph = graph, .budget = Bytes::max(), .order = order}, steps(words)).ok;
  };
  CHECK(ok(listed, Order::free, "c1 c0"));
  CHECK_FALSE(ok(listed, Order::given, "c1 c0"));
  CHECK(ok(listed, Order::given, "c0 f1 c1 c0"));
  CHECK(ok(turned, Order::given, "c1 c0"));
  CHECK_FALSE(ok(turned, Order::given, "c0 c1"));
  CHECK(ok(turned, Order::given, "c1 f2 c0 c1"));
}

TEST_CASE("verify: the time limit is inclusive and counts transfers") {
  const Graph graph = chain();
  const auto ok = [&](std::int64_t limit, std::string_view words) {
    return verify({.graph = graph,
                   .budget = Bytes::max(),
                   .time_limit = Ticks(limit),
                   .machine = machine_by_hand()},
                  steps(words))
        .ok;
  };
  CHECK(ok(117, "c0 c1 c2"));
  CHECK_FALSE(ok(116, "c0 c1 c2"));
  CHECK(ok(125, "c0 c1 c2 o3"));
  CHECK_FALSE(ok(124, "c0 c1 c2 o3"));
}

TEST_CASE("verify: a plan for another machine is refused") {
  const Graph graph = chain();
  Problem problem{.graph = graph, .budget = Bytes::max(), .machine = machine_by_hand()};
  CHECK(verify(problem, steps("c0 o1 c1 c2")).ok);
  problem.machine->host_to_device.latency = Ticks(4);
  CHECK_FALSE(verify(problem, steps("c0 o1 c1 c2")).ok);
  Plan unmoved = steps("c0 c1 c2");
  unmoved.machine.reset();
  CHECK(verify(problem, unmoved).ok);
}

TEST_CASE("verify: a problem without a machine allows no transfers") {
  const Graph graph = chain();
  const Problem problem{.graph = graph, .budget = Bytes::max()};
  const Verdict verdict = verify(problem, steps("c0 o1 c1 c2"));
  REQUIRE(verdict.violation);
  CHECK(verdict.violation->step == 1);
  CHECK(verdict.violation->reason.find("the problem has no machine") != std::string::npos);
  CHECK(verify(problem, steps("c0 c1 c2")).ok);
}

TEST_CASE("verify: random legal plans hold, at their cost and at no less") {
  for (int seed = 0; seed < samples(1500); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 7000);
    RandomGraphSettings graph_settings;
    graph_settings.ops = random.below(13);
    const Graph graph = random_graph(random, graph_settings);
    RandomPlanSettings settings;
    settings.order = random.chance(0.5) ? Order::given : Order::free;
    const Plan plan = random_plan(random, graph, settings);
    Problem problem{.graph = graph, .budget = Bytes::max(), .order = settings.order};
    problem.machine = plan.machine;
    const Cost cost = judge(problem, plan).cost;
    problem.budget = cost.peak;
    problem.time_limit = cost.duration;
    CHECK(judge(problem, plan).ok);
    problem.budget = cost.peak - Bytes(1);
    CHECK_FALSE(judge(problem, plan).ok);
    problem.budget = cost.peak;
    problem.time_limit = cost.duration - Ticks(1);
    CHECK_FALSE(verify(problem, plan).ok);
  }
}

// Mutations of which it is plain what must become of them; the rest is for the second verifier.
TEST_CASE("verify: a plan that lost a computation it needs, or doubled a step, is refused") {
  for (int seed = 0; seed < samples(1500); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 9000);
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(10);
    const Graph graph = random_graph(random, settings);
    const Plan plan = own_plan(graph);
    const Problem problem{.graph = graph, .budget = Bytes::max()};
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const bool computes = plan.steps[i].is_compute();
      Plan changed = plan;
      changed.steps.insert(changed.steps.begin() + static_cast<std::ptrdiff_t>(i), plan.steps[i]);
      // Twice in a row: the outputs are live, or there are none and it may run only once.
      CHECK_FALSE(judge(problem, changed).ok);
      changed = plan;
      changed.steps.erase(changed.steps.begin() + static_cast<std::ptrdiff_t>(i));
      // Without a compute an op is missing; without a free nothing breaks, it only takes more
      // bytes.
      const Verdict verdict = judge(problem, changed);
      CHECK(verdict.ok == !computes);
      if (!computes) CHECK(verdict.cost.peak >= own_peak(graph));
    }
  }
}

TEST_CASE("verify: a plan mutated at random never breaks the verifier") {
  for (int seed = 0; seed < samples(1500); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 11000);
    const Graph graph = random_graph(random);
    Plan plan = random_plan(random, graph);
    const Problem problem{.graph = graph, .budget = Bytes::max()};
    for (int k = 0; k < 20; ++k) {
      plan =
          mutated(random, graph, std::move(plan), static_cast<Mutation>(random.below(kMutations)));
      const Verdict verdict = judge(problem, plan);
      CHECK(verdict.ok == !verdict.violation.has_value());
      if (verdict.violation) CHECK(verdict.violation->step <= plan.steps.size());
    }
  }
}

TEST_CASE("budgets: shares of the baseline peak and of the plannable bytes") {
  const Graph graph = chain();  // baseline peak 65, of which 10 are inputs
  const auto bytes = [&](std::string_view text) {
    return resolve_budget(parse_budget(text), graph).count();
  };
  CHECK(bytes("64") == 64);
  CHECK(bytes("100%") == 65);
  CHECK(bytes("50%") == 32);
  CHECK(bytes("99.9%") == 64);
  CHECK(bytes("150%") == 97);
  CHECK(bytes("act:0%") == 10);
  CHECK(bytes("act:50%") == 37);
  CHECK(bytes("act:100%") == 65);
  const Graph larger = Sketch({1000}).graph();
  CHECK_THROWS_AS(resolve_budget(parse_budget("9000000000000000000%"), larger), InputError);
}

}  // namespace
}  // namespace lowtide

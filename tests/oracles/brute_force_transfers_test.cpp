// The oracle with a link: by hand, against itself taking every step anywhere, against the oracle
// without a link, against random plans; its witnesses against verify.
#include "oracles/brute_force_transfers.h"

#include <doctest/doctest.h>

#include "lowtide/base/error.h"

#include "support/judge.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

Graph drawn(Random& random, std::size_t ops, double on_host) {
  RandomGraphSettings settings;
  settings.ops = ops;
  settings.inputs = 2;
  settings.several_outputs = 0.1;
  settings.on_host = on_host;
  settings.described = 0;
  return random_graph(random, settings);
}

oracle::Link drawn_link(Random& random, const Graph& graph) {
  oracle::Link link{random.chance(0.5) ? Order::given : Order::free, random_machine(random)};
  if (random.chance(0.3)) {
    Bytes most;
    for (std::size_t t = 0; t < graph.tensor_count(); ++t) most += graph.bytes(TensorId(t));
    link.host_budget = Bytes(random.between(0, most.count()));
  }
  return link;
}

TEST_CASE("brute force over a link: one swap by hand") {
  // Copies of t0 take 5 + 10 out and 3 + 5 in.
  const Graph graph = Sketch({20, 1, 15, 1, 1})
                          .op({0}, {1}, 10)
                          .op({1}, {2}, 100)
                          .op({1, 2}, {3}, 1)
                          .op({0, 3}, {4}, 7)
                          .keep({4})
                          .graph();
  const oracle::Link link{Order::given, machine_by_hand()};
  const auto all = oracle::all_tradeoffs(graph, link);
  REQUIRE(all.size() == 3);
  CHECK(all[0].duration == Ticks(118));
  CHECK(all[0].peak == Bytes(37));
  // Out 0..15, freed before op 2, in from 111 on, when t1 and t2 have gone.
  CHECK(all[1].duration == Ticks(111 + 8 + 7));
  CHECK(all[1].peak == Bytes(36));
  // Freed before op 1, which waits from 10 to 15.
  CHECK(all[2].duration == Ticks(116 + 8 + 7));
  CHECK(all[2].peak == Bytes(22));
  // The host must hold what leaves.
  CHECK_FALSE(oracle::fastest(graph, {Order::given, machine_by_hand(), Bytes(19)}, Bytes(36)));
}

TEST_CASE("brute force over a link: an input at home on the host may be fetched or not") {
  const Graph graph = Sketch({8, 1}).op({0}, {1}, 2).on_host({0}).keep({1}).graph();
  const auto all = oracle::all_tradeoffs(graph, {Order::free, machine_by_hand()});
  REQUIRE(all.size() == 1);
  CHECK(all[0].duration == Ticks(5 + 2));
  CHECK(all[0].peak == Bytes(9));
}

TEST_CASE("brute force over a link refuses what is too large") {
  Random random(1);
  const Graph graph =
      random_graph(random, RandomGraphSettings::plain(oracle::kMostOpsWithTransfers + 1));
  CHECK_THROWS_AS(oracle::all_tradeoffs(graph, {Order::free, machine_by_hand()}), InputError);
}

TEST_CASE("brute force over a link: pruned steps lose no optimum") {
  for (int seed = 0; seed < samples(150); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const Graph graph = drawn(random, 1 + random.below(kSanitized ? 3 : 4), 0.2);
    if (graph.tensor_count() > 8) continue;
    const oracle::Link link = drawn_link(random, graph);
    const auto curve = oracle::all_tradeoffs(graph, link);
    for (const auto& point : curve) {
      const auto slow = oracle::fastest(graph, link, point.peak, oracle::Frees::anywhere);
      REQUIRE(slow);
      CHECK(slow->duration == point.duration);
    }
    const Bytes below = curve.empty() ? Bytes::max() : curve.back().peak - Bytes(1);
    CHECK_FALSE(oracle::fastest(graph, link, below, oracle::Frees::anywhere));
  }
}

TEST_CASE("brute force over a link: an endless link is never used") {
  Machine slow = machine_by_hand();
  slow.device_to_host.latency = slow.host_to_device.latency = Ticks(1'000'000);
  for (int seed = 0; seed < samples(200); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 2'000'000);
    const Graph graph = drawn(random, 1 + random.below(5), 0);
    if (graph.tensor_count() > 9) continue;
    const Order order = random.chance(0.5) ? Order::given : Order::free;
    const auto with = oracle::all_tradeoffs(graph, {order, slow});
    const auto without = oracle::all_tradeoffs(graph, order);
    REQUIRE(with.size() >= without.size());
    for (std::size_t i = 0; i < without.size(); ++i) {
      CHECK(with[i].peak == without[i].peak);
      CHECK(with[i].duration == without[i].duration);
    }
  }
}

TEST_CASE("brute force over a link: its schedules pass verify at their cost") {
  for (int seed = 0; seed < samples(300); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 1'000'000);
    const Graph graph = drawn(random, 1 + random.below(5), 0.15);
    if (graph.tensor_count() > 8) continue;
    const oracle::Link link = drawn_link(random, graph);
    Problem problem{.graph = graph,
                    .budget = Bytes(0),
                    .order = link.order,
                    .machine = link.machine,
                    .host_budget = link.host_budget};
    const auto curve = oracle::all_tradeoffs(graph, link);
    for (const auto& point : curve) {
      problem.budget = point.peak;
      const Verdict verdict = judge(problem, point.plan);
      const std::string why = verdict.violation ? verdict.violation->reason : "";
      REQUIRE_MESSAGE(verdict.ok, why);
      CHECK(verdict.cost.duration == point.duration);
      CHECK(verdict.cost.peak == point.peak);
    }
    for (int tries = 0; tries < 20; ++tries) {
      Plan plan = random_plan(random, graph, {.order = link.order});
      plan.machine = link.machine;
      problem.budget = Bytes::max();
      const Verdict verdict = verify(problem, plan);
      if (!verdict.ok) continue;  // over the host's budget
      const auto best = oracle::least_duration(curve, verdict.cost.peak);
      REQUIRE(best);
      CHECK(verdict.cost.duration >= *best);
    }
  }
}

}  // namespace
}  // namespace lowtide

// Collectives that are issued earlier and waited for later: by hand, and on random plans.
#include "lowtide/driver/overlap.h"

#include <string>

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

std::string words_of(const Plan& plan) {
  std::string words;
  for (const Step& step : plan.steps) {
    const char letter = step.kind == StepKind::free       ? 'f'
                        : step.kind == StepKind::offload  ? 'o'
                        : step.kind == StepKind::prefetch ? 'p'
                        : step.count > 0                  ? 'i'
                                                          : 'c';
    words += (words.empty() ? "" : " ") + (letter + std::to_string(step.index));
    for (const TensorId id : plan.overwritten(step)) words += "," + std::to_string(id.index());
  }
  return words;
}

Plan overlapped(const Problem& problem, const Plan& plan, Bytes limit) {
  Limits unlimited;
  return driver::overlapped(problem, plan, limit, unlimited);
}

std::string moved(const Graph& graph, std::string_view words, std::int64_t limit,
                  Order order = Order::free) {
  const Problem problem{.graph = graph, .budget = Bytes(limit), .order = order};
  return words_of(overlapped(problem, steps(words), Bytes(limit)));
}

// Two blocks: a gather (40), its wait and 100 of computing each.
Graph blocks() {
  return Sketch({1, 1, 50, 50, 50, 50, 4, 4})
      .op({0}, {2}, 40)
      .network()
      .op({0, 2}, {3}, 0)
      .in_place({{2, 3}})
      .op({3}, {6}, 100)
      .op({1}, {4}, 40)
      .network()
      .op({1, 4}, {5}, 0)
      .in_place({{4, 5}})
      .op({5, 6}, {7}, 100)
      .keep({7})
      .graph();
}
constexpr std::string_view kInTurn = "c0 i1,2 c2 f3 c3 i4,4 c5 f5 f6";

TEST_CASE("overlap: a gather is issued while there is computing to hide it, if there is room") {
  CHECK(simulate(blocks(), steps(kInTurn)).cost.duration == Ticks(280));
  CHECK(moved(blocks(), kInTurn, 200) == "c0 i1,2 c3 c2 f3 i4,4 c5 f5 f6");
  CHECK(moved(blocks(), kInTurn, 106) == "c0 i1,2 c3 c2 f3 i4,4 c5 f5 f6");
  CHECK(moved(blocks(), kInTurn, 105) == kInTurn);
  CHECK(moved(blocks(), kInTurn, 200, Order::given) == kInTurn);
}

TEST_CASE("overlap: a gather is issued no earlier than it must be") {
  // Op 0 and op 1 take 100 each; the gather (40) is hidden behind op 1 alone.
  const Graph graph = Sketch({1, 4, 4, 50, 4})
                          .op({0}, {1}, 100)
                          .op({1}, {2}, 100)
                          .op({0}, {3}, 40)
                          .network()
                          .op({2, 3}, {4}, 10)
                          .keep({4})
                          .graph();
  CHECK(moved(graph, "c0 c1 f1 c2 c3 f2 f3", 200) == "c0 c2 c1 f1 c3 f2 f3");
}

TEST_CASE("overlap: a wait is put off behind what need not wait, with the frees of what it reads") {
  // Op 1 scatters (40) what op 0 makes, op 2 waits, op 3 and op 4 compute.
  const Graph graph = Sketch({60, 8, 8, 4, 4})
                          .op({}, {0}, 10)
                          .op({0}, {1}, 40)
                          .network()
                          .op({0, 1}, {2}, 0)
                          .op({}, {3}, 30)
                          .op({3}, {4}, 30)
                          .keep({2, 4})
                          .graph();
  CHECK(moved(graph, "c0 c1 c2 f0 f1 c3 c4 f3", 200) == "c0 c1 c3 c4 c2 f0 f1 f3");
  CHECK(moved(graph, "c0 c1 c2 f0 f1 c3 c4 f3", 84) == "c0 c1 c3 c4 c2 f0 f1 f3");
  CHECK(moved(graph, "c0 c1 c2 f0 f1 c3 c4 f3", 83) == "c0 c1 c3 c2 f0 f1 c4 f3");
  CHECK(moved(graph, "c0 c1 c2 f0 f1 c3 c4 f3", 79) == "c0 c1 c2 f0 f1 c3 c4 f3");
}

TEST_CASE("overlap: a free of what is still sent is put off, if there is room for the bytes") {
  // Op 1 scatters (40) what op 0 makes, and nothing waits for it; ops 2 and 3 compute.
  const Graph graph = Sketch({60, 8, 4, 4})
                          .op({}, {0}, 10)
                          .op({0}, {1}, 40)
                          .network()
                          .op({}, {2}, 30)
                          .op({2}, {3}, 30)
                          .keep({1, 3})
                          .graph();
  CHECK(simulate(graph, steps("c0 c1 f0 c2 c3 f2")).cost.duration == Ticks(110));
  CHECK(moved(graph, "c0 c1 f0 c2 c3 f2", 200) == "c0 c1 c2 c3 f0 f2");
  CHECK(moved(graph, "c0 c1 f0 c2 c3 f2", 75) == "c0 c1 c2 f0 c3 f2");
  CHECK(moved(graph, "c0 c1 f0 c2 c3 f2", 71) == "c0 c1 f0 c2 c3 f2");
  CHECK(moved(graph, "c0 c1 f0 c2 c3 f2", 200, Order::given) == "c0 c1 c2 c3 f0 f2");
}

TEST_CASE(
    "overlap: a gather is issued before a reduction that is due later, unless the graph forbids "
    "it") {
  // Op 0 computes (100) what op 1 reduces (30); op 3 gathers (40) for op 4, which computes (100).
  const auto graph = [](Sketch::Indices after) {
    return Sketch({1, 8, 8, 50, 4})
        .op({}, {1}, 100)
        .op({1}, {2}, 30)
        .network()
        .op({0}, {3}, 40)
        .network()
        .after(after)
        .op({3}, {4}, 100)
        .keep({2, 4})
        .graph();
  };
  CHECK(moved(graph({}), "c0 c1 c2 c3 f1 f3", 200) == "c2 c0 c1 c3 f1 f3");
  CHECK(moved(graph({1}), "c0 c1 c2 c3 f1 f3", 200) == "c0 c1 c2 c3 f1 f3");
}

TEST_CASE("overlap: what a collective does not read is held back behind it") {
  // Op 0 (100) makes the gradient of weights, op 1 (50) that of inputs, op 2 (80) sums it.
  const Graph graph = Sketch({8, 30, 8, 8, 8})
                          .op({0}, {1}, 100)
                          .op({0}, {2}, 50)
                          .op({2}, {3}, 80)
                          .network()
                          .op({3}, {4}, 10)
                          .releasable({0})
                          .keep({1, 4})
                          .graph();
  CHECK(moved(graph, "c0 c1 f0 c2 c3 f2 f3", 200) == "c1 c2 c0 f0 c3 f2 f3");
  CHECK(moved(graph, "c0 c1 f0 c2 c3 f2 f3", 54) == "c1 c2 c0 f0 c3 f2 f3");
}

TEST_CASE("overlap: at its limits the result is what has been moved so far") {
  // Each op of a chain (10) reads its own gather (30), of which any may be issued at the start.
  constexpr std::int64_t kLength = 300;
  GraphBuilder builder;
  for (std::int64_t i = 0; i < kLength; ++i) {
    Op gather, op;
    gather.time = Ticks(30);
    gather.lane = Lane::network;
    op.time = Ticks(10);
    OpLinks made, links;
    made.outputs = {2 * i};
    links.inputs = {2 * i};
    if (i > 0) links.inputs.push_back(2 * i - 1);
    links.outputs = {2 * i + 1};
    builder.add_op(gather, made);
    builder.add_op(op, links);
    for (int k = 0; k < 2; ++k) builder.add_tensor(Tensor{});
  }
  builder.set_outputs({2 * kLength - 1});
  const Graph graph = builder.build();
  const Problem problem{.graph = graph, .budget = Bytes::max()};
  const Plan plan = own_plan(graph);
  constexpr std::int64_t kWork = 20'000;
  Limits limits({.work = kWork});
  const Plan cut = driver::overlapped(problem, plan, problem.budget, limits);
  CHECK(limits.stopped());
  CHECK(limits.work() <= kWork + 2 * static_cast<std::int64_t>(plan.steps.size()));
  CHECK(verify(problem, cut).ok);
  const Ticks whole = simulate(graph, overlapped(problem, plan, problem.budget)).cost.duration;
  CHECK(whole < simulate(graph, cut).cost.duration);
  CHECK(simulate(graph, cut).cost.duration < simulate(graph, plan).cost.duration);
}

TEST_CASE("overlap: random plans stay legal, within the limit, and take no longer") {
  int shorter = 0;
  for (int seed = 0; seed < samples(400); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    RandomGraphSettings settings;
    settings.ops = 4 + random.below(30);
    settings.network = 0.3;
    settings.barrier = 0.02;
    const Graph graph = random_graph(random, settings);
    const Order order = random.chance(0.2) ? Order::given : Order::free;
    const Plan plan = random_plan(random, graph, {.order = order, .transfers = random.chance(0.3)});
    const Cost cost = simulate(graph, plan).cost;
    Problem problem{.graph = graph, .budget = cost.peak, .order = order, .machine = plan.machine};
    if (random.chance(0.7)) problem.budget += Bytes(random.between(0, 40));
    const Plan better = overlapped(problem, plan, problem.budget);
    const Verdict verdict = verify(problem, better);
    const std::string why = verdict.violation ? verdict.violation->reason : "";
    REQUIRE_MESSAGE(verdict.ok, why);
    CHECK(verdict.cost.duration <= cost.duration);
    shorter += verdict.cost.duration < cost.duration ? 1 : 0;
  }
  CHECK((kSanitized || shorter > samples(50)));
}

}  // namespace
}  // namespace lowtide

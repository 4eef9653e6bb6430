// What a link to the host may never cost: plans that use it are no worse than plans that do not,
// nor than greedy swapping, with the same work.
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/driver/driver.h"
#include "lowtide/graph/generate.h"
#include "lowtide/plan/budget.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"

#include "support/judge.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

// In per cent; without a plan more than any.
double overhead(const solve::SolverTable& table, const Problem& problem, std::string_view solver,
                std::int64_t work) {
  driver::Request request;
  request.solver = solver;
  request.limits.work = work;
  const Outcome outcome = driver::solve(table, problem, request).outcome;
  if (!outcome.plan) return 1e9;
  const Verdict verdict = judge(problem, *outcome.plan);
  CHECK(verdict.ok);
  return overhead_percent(outcome.cost.duration, problem.graph.total_time());
}

constexpr double kTie = 0.05;  // points

TEST_CASE("link: plans with it are no worse than plans without") {
  const solve::SolverTable table = driver::all_solvers();
  const std::int64_t work = sanitized(40'000, test_scale() > 1 ? 2'000'000 : 700'000);
  int better = 0;
  for (const std::string_view kind : {"chain", "transformer", "resnet", "unet"})
    for (const char* budget : {"act:70%", "act:45%"})
      for (const std::int64_t speed : {2, 25}) {
        if (kSanitized && (speed == 2 || kind != "unet")) continue;
        // In the quick run each network over one of the links.
        const bool slow = kind == "chain" || kind == "unet";
        if (!kSanitized && test_scale() == 1 && slow != (speed == 2)) continue;
        CAPTURE(kind);
        CAPTURE(budget);
        CAPTURE(speed);
        const Graph graph = generate(kind, 200, 7);
        const Link link{Ticks(10'000), Bytes(speed), Ticks(1)};
        Problem problem{.graph = graph,
                        .budget = resolve_budget(parse_budget(budget), graph),
                        .order = Order::given};
        const double without = overhead(table, problem, "auto", work);
        problem.machine = Machine{link, link};
        const double with = overhead(table, problem, "auto", work);
        CHECK(with <= overhead(table, problem, "offload", work) + kTie);
        if (kSanitized) continue;  // a tenth of the work is too little to be no worse everywhere
        CHECK(with <= without + kTie);
        better += with < without - kTie ? 1 : 0;
      }
  CHECK((kSanitized || better >= (test_scale() > 1 ? 12 : 6)));
}

// With everything that a graph may have, in both orders; links from useless to as fast as memory.
TEST_CASE("link: plans with it are no worse on random graphs") {
  const solve::SolverTable table = driver::all_solvers();
  const int graphs = samples(40);
  int better = 0, tight = 0;
  for (int seed = 0; seed < graphs; ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 1);
    RandomGraphSettings settings;
    settings.ops = 8 + random.below(30);
    settings.window = 4 + random.below(12);
    settings.bytes = 100;
    settings.time = 100;
    const Graph graph = random_graph(random, settings);
    const Link link{Ticks(random.between(0, 20)), Bytes(random.between(1, 10)),
                    Ticks(random.between(1, 3))};
    Problem problem{.graph = graph,
                    .budget = resolve_budget(
                        parse_budget("act:" + std::to_string(random.between(30, 95)) + "%"), graph),
                    .order = random.chance(0.5) ? Order::given : Order::free};
    CAPTURE(problem.budget);
    const double without = overhead(table, problem, "auto", 200'000);
    problem.machine = Machine{link, link};
    const double with = overhead(table, problem, "auto", 200'000);
    CHECK(with <= without + kTie);
    tight += without > kTie ? 1 : 0;
    better += with < without - kTie ? 1 : 0;
  }
  CHECK(tight >= graphs / 4);
  CHECK(better >= graphs / 8);
}

// What other planners keep on the device: a parameter (0) and the optimizer's state (1), and what a
// random draw made (2). Between their uses a large tensor (4) comes and goes; the last op changes
// the state.
TEST_CASE("link: random draws, parameters and state are offloaded if necessary") {
  const Graph graph = Sketch({20, 20, 20, 1, 30, 1, 1})
                          .op({0}, {2}, 100)
                          .once()
                          .op({2}, {3}, 100)
                          .op({3}, {4}, 100)
                          .op({4}, {5}, 100)
                          .op({5, 2}, {6}, 100)
                          .op({6, 0, 1}, {}, 100)
                          .mutates({1})
                          .graph();
  const solve::SolverTable table = driver::all_solvers();
  driver::Request request;
  request.limits.work = 100'000;
  const auto planned = [&](std::int64_t budget, std::optional<Machine> machine) {
    const Problem problem{
        .graph = graph, .budget = Bytes(budget), .order = Order::given, .machine = machine};
    Outcome outcome = driver::solve(table, problem, request).outcome;
    if (outcome.plan) CHECK(judge(problem, *outcome.plan).ok);
    return outcome;
  };
  const Machine machine = machine_by_hand();
  // All of it fits: nothing moves.
  REQUIRE(own_peak(graph) == Bytes(91));
  CHECK_FALSE(transfers(*planned(91, machine).plan));
  // A byte less, and there is nothing to compute again.
  CHECK(planned(90, std::nullopt).status == Status::infeasible);
  // The draw stays; the other two leave, and come while the op before their reader runs.
  const Outcome hidden = planned(62, machine);
  CHECK(hidden.status == Status::optimal);
  CHECK(hidden.cost.duration == Ticks(600));
  // Room for nothing beside the large one: the state leaves first, the op before waits for it.
  const Outcome tight = planned(41, machine);
  REQUIRE(tight.plan);
  CHECK(tight.cost.host_peak == Bytes(60));
  CHECK(tight.cost.duration > Ticks(600));
  CHECK(planned(40, machine).status == Status::infeasible);
}

}  // namespace
}  // namespace lowtide

// The solver that plans a network as a hierarchy of blocks: its partitions, blocks and top
// together.
#include "lowtide/solve/hierarchy/hiremate/hiremate.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"
#include "lowtide/solve/hierarchy/block/block_solver.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"

#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide::solve::hierarchy {

namespace {

// So many per cent of what is plannable.
Bytes budget_of(const Graph& graph, std::int64_t percent) {
  const Bytes fixed = graph.input_bytes() + graph.resident();
  return fixed + Bytes((own_peak(graph) - fixed).count() * percent / 100);
}

Outcome run(const Solver& solver, const Graph& graph, Bytes budget,
            std::vector<std::pair<std::string, std::string>> given, LimitSettings limits,
            Order order) {
  const SolverTable table = make_solvers();
  const Problem problem{.graph = graph, .budget = budget, .order = order};
  ContextSettings settings{.limits = limits,
                           .seed = 1,
                           .threads = 2,
                           .options = Options(solver.options()),
                           .starts = {},
                           .known = {},
                           .solvers = &table,
                           .watcher = {}};
  for (const auto& [name, value] : given) settings.options.set(name, value);
  Context context(problem, solver.name(), std::move(settings));
  Outcome outcome = solver.solve(problem, context);
  if (outcome.plan) CHECK(verify(problem, *outcome.plan).ok);
  return outcome;
}

Outcome run(const Graph& graph, Bytes budget,
            std::vector<std::pair<std::string, std::string>> given, std::int64_t work = 2'000'000,
            Order order = Order::free) {
  return run(*make_hiremate(), graph, budget, std::move(given), {.seconds = {}, .work = work},
             order);
}

// Takes long, and has no answer.
class Helpless final : public BlockSolver {
 public:
  std::string_view name() const override { return "helpless"; }
  std::string_view summary() const override { return "nothing"; }
  bool is_slow() const override { return true; }
  Support supports(const BlockTask&) const override { return {}; }
  std::vector<BlockOption> solve(const BlockTask&, Limits&) const override { return {}; }
};

}  // namespace

TEST_CASE("hiremate: ops of no duration may run twice in an optimal plan") {
  Random random(9);
  for (int sample = 0; sample < 40; ++sample) {
    RandomGraphSettings settings;
    settings.ops = 10 + random.below(30);
    settings.barrier = 0.1;
    settings.zero_time = 0.6;
    const Graph graph = random_graph(random, settings);
    const Bytes budget(own_peak(graph).count() * 4 / 10);
    run(graph, budget, {{"polish", "off"}, {"partition", "multilevel"}, {"block_size", "6"}},
        20'000);
  }
}

TEST_CASE("hiremate: a solve without time reports the deadline") {
  const Graph graph = generate("transformer", 200, 1);
  for (const double seconds : {0.0, 1e-6}) {
    const LimitSettings limits{.seconds = seconds, .work = {}};
    const Outcome outcome = run(*make_hiremate(), graph, budget_of(graph, 50), {{"polish", "off"}},
                                limits, Order::free);
    CHECK(outcome.stopped_by == StopReason::deadline);
  }
}

TEST_CASE("hiremate: plans of repeated networks are near the bound") {
  const SolverTable table = make_solvers();
  for (const std::string_view kind : {"transformer", "resnet"}) {
    const Graph graph = generate(kind, static_cast<std::size_t>(sanitized(500, 2000)), 11);
    const Bytes budget = budget_of(graph, 50);
    const Problem problem{.graph = graph, .budget = budget, .order = Order::given};
    const Solver& bounds = *table.find("bounds");
    ContextSettings settings{.limits = {.seconds = {}, .work = sanitized(30'000, 300'000)},
                             .options = Options(bounds.options()),
                             .starts = {},
                             .known = {},
                             .watcher = {}};
    Context context(problem, "bounds", std::move(settings));
    const Ticks bound = bounds.solve(problem, context).bound.duration;
    const Outcome outcome =
        run(graph, budget, {{"polish", "off"}}, sanitized(200'000, 2'000'000), Order::given);
    REQUIRE(outcome.plan.has_value());
    if (kSanitized) continue;  // a tenth of the work says little
    const double lost = overhead_percent(outcome.cost.duration, graph.total_time());
    const double least = overhead_percent(bound, graph.total_time());
    CHECK_MESSAGE(lost <= 1.1 * least + 0.05, kind << ": " << lost << " beside " << least);
  }
}

TEST_CASE("hiremate: every partitioner and block solver can be selected, alone and with others") {
  const Graph graph = generate("unet", 80, 3);
  const Bytes budget(own_peak(graph).count() * 7 / 10);
  const std::int64_t work = sanitized(20'000, 60'000);
  const partition::PartitionerTable partitioners = partition::make_partitioners();
  for (const auto& one : partitioners.all())
    CHECK(run(graph, budget, {{"partition", std::string(one->name())}}, work).plan);
  const BlockSolverTable block_solvers = make_block_solvers();
  for (const auto& one : block_solvers.all()) {
    if (!one->missing().empty()) continue;
    run(graph, budget, {{"block", std::string(one->name())}, {"polish", "off"}}, work);
    run(graph, budget, {{"top", std::string(one->name())}, {"polish", "off"}}, work);
  }
  CHECK(run(graph, budget, {{"partition", "h_partition,chain"}, {"choice", "prices"}}, work).plan);
  CHECK(run(graph, budget, {{"levels", "1"}}, work).plan);
  CHECK_THROWS_AS(run(graph, budget, {{"partition", "h_partition,nobody"}}), InputError);
  CHECK_THROWS_AS(run(graph, budget, {{"partition", "chain,chain"}}), InputError);
}

TEST_CASE("hiremate: a network without blocks is one block") {
  const Graph graph = generate("chain", 50, 3);
  CHECK(run(graph, budget_of(graph, 75), {{"levels", "1"}, {"top", "rotor"}, {"polish", "off"}})
            .plan);
}

TEST_CASE("hiremate: options of slow block solvers are used although a slow top solver fails") {
  const Graph graph = generate("transformer", 400, 5);
  const Bytes budget = budget_of(graph, 70);
  BlockSolverTable block_solvers = make_block_solvers();
  block_solvers.add(std::make_unique<Helpless>());
  const auto solver = make_hiremate(partition::make_partitioners(), std::move(block_solvers));
  const auto time_with = [&](std::string block) {
    const Outcome outcome =
        run(*solver, graph, budget,
            {{"block", std::move(block)}, {"top", "helpless"}, {"polish", "off"}},
            {.seconds = {}, .work = sanitized(500'000, 2'000'000)}, Order::given);
    REQUIRE(outcome.plan);
    return outcome.cost.duration;
  };
  CHECK(time_with("search") < time_with("helpless"));
}

}  // namespace lowtide::solve::hierarchy

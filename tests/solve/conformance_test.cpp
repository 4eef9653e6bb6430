// All solvers of the table on small graphs of every kind: each answer verified, its claims held
// against brute force, the same twice. LOWTIDE_TEST_SCALE multiplies the random graphs.
#include "solve/conformance.h"

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"

#include "solve/cases.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"

namespace lowtide {
namespace {

Graph any_graph(Random& random) {
  const bool plain = random.chance(0.3);
  RandomGraphSettings settings = plain ? RandomGraphSettings::plain(0) : RandomGraphSettings{};
  if (random.chance(0.4)) settings.reads = 2;
  settings.ops = random.chance(0.1) ? random.below(4) : 4 + random.below(4);
  return random_graph(random, settings);
}

// Small enough for brute force with a link to the host.
Graph small_graph(Random& random) {
  RandomGraphSettings settings;
  settings.inputs = 2;
  settings.several_outputs = 0.1;
  settings.ops = 2 + random.below(4);
  if (random.chance(0.3)) settings.on_host = 0.4;
  Graph graph = random_graph(random, settings);
  while (graph.tensor_count() > 8) graph = random_graph(random, settings);
  return graph;
}

// What lies on the host whatever a plan does.
Bytes home_bytes(const Graph& graph) {
  Bytes bytes;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.on_host(TensorId(i))) bytes += graph.bytes(TensorId(i));
  return bytes;
}

void sweep(Order order, int graphs) {
  const solve::SolverTable table = driver::all_solvers();
  for (int i = 0; i < graphs; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    CAPTURE(seed);
    Random random(seed);
    const Graph graph = any_graph(random);
    const Problem problem{.graph = graph, .budget = Bytes(0), .order = order};
    examine(table, problem, seed, all_tradeoffs(problem));
  }
}

TEST_CASE("conformance: random graphs in any order") { sweep(Order::free, samples(120, 600)); }

TEST_CASE("conformance: random graphs in the given order") {
  sweep(Order::given, samples(120, 600));
}

TEST_CASE("conformance: random graphs with a link to the host") {
  const solve::SolverTable table = driver::all_solvers();
  for (int i = 0; i < samples(80, 300); ++i) {
    const auto seed = static_cast<std::uint64_t>(i) + 700000;
    CAPTURE(seed);
    Random random(seed);
    const Graph graph = small_graph(random);
    Problem problem{.graph = graph, .budget = Bytes(0), .machine = random_machine(random)};
    problem.order = random.chance(0.5) ? Order::given : Order::free;
    if (random.chance(0.1)) problem.objective = Objective::least_memory;
    if (random.chance(0.3)) problem.host_budget = home_bytes(graph) + Bytes(random.between(0, 30));
    examine(table, problem, seed, all_tradeoffs(problem));
  }
}

TEST_CASE("conformance: least memory within a time limit") {
  const solve::SolverTable table = driver::all_solvers();
  for (int i = 0; i < samples(80, 300); ++i) {
    const auto seed = static_cast<std::uint64_t>(i) + 500000;
    CAPTURE(seed);
    Random random(seed);
    const Graph graph = any_graph(random);
    Problem problem{.graph = graph, .budget = Bytes(0), .objective = Objective::least_memory};
    problem.order = random.chance(0.5) ? Order::given : Order::free;
    const auto curve = oracle::all_tradeoffs(graph, problem.order);
    examine(table, problem, seed, curve);
    for (const oracle::Schedule& schedule : curve)
      for (const Ticks limit : {schedule.duration - Ticks(1), schedule.duration}) {
        if (limit < Ticks(0)) continue;
        problem.time_limit = limit;
        problem.budget = Bytes::max();
        CAPTURE(limit.count());
        for (const solve::Solver* solver : takers(table, problem)) {
          CAPTURE(solver->name());
          const Answered answered = ask(table, *solver, problem, settings_for(*solver));
          check_answer(problem, table, answered);
          check_truth(problem, answered.outcome, curve);
        }
      }
  }
}

TEST_CASE("conformance: the fixed cases") {
  const solve::SolverTable table = driver::all_solvers();
  for (const Case& given : small_cases())
    for (const Order order : {Order::free, Order::given})
      for (const Objective objective : {Objective::least_time, Objective::least_memory}) {
        CAPTURE(given.name);
        CAPTURE(to_string(order));
        CAPTURE(to_string(objective));
        const Problem problem{
            .graph = given.graph, .budget = Bytes(0), .objective = objective, .order = order};
        examine(table, problem, 1, oracle::all_tradeoffs(given.graph, order));
      }
}

TEST_CASE("conformance: names are distinct and every solver has a summary") {
  const solve::SolverTable table = driver::all_solvers();
  CHECK(table.find("no such solver") == nullptr);
  for (const auto& solver : table.all()) {
    CHECK_FALSE(solver->name().empty());
    CHECK_FALSE(solver->summary().empty());
    CHECK(table.find(solver->name()) == solver.get());
    for (const solve::OptionSpec& option : solver->options()) {
      CHECK_FALSE(option.name.empty());
      CHECK_FALSE(option.usage.empty());
      // What is the default must be allowed.
      solve::Options options(solver->options());
      if (option.choices.empty()) {
        options.set(option.name, std::to_string(option.default_number));
        CHECK(options.number(option.name) == doctest::Approx(option.default_number));
      } else {
        options.set(option.name, option.default_choice);
        CHECK(options.choice(option.name) == option.default_choice);
      }
    }
  }
}

}  // namespace
}  // namespace lowtide

// A limit may end between any two stages: that of one part while the others go on, or all of them.
// Whatever has been found by then is an answer. Each look at limits is counted, and limits end at
// some of these (in the long run, at many).
#include "support/interruptions.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/driver/curve.h"
#include "lowtide/driver/driver.h"
#include "lowtide/driver/fit.h"
#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "solve/cases.h"
#include "solve/conformance.h"
#include "support/network.h"
#include "support/print.h"
#include "support/scale.h"

namespace lowtide {
namespace {

constexpr double kLong = 1e6;  // seconds: there is a clock, and it never ends anything
constexpr Machine kMachine = {{Ticks(10000), Bytes(25), Ticks(1)},
                              {Ticks(10000), Bytes(25), Ticks(1)}};

std::int64_t ends(std::int64_t quick) { return test_scale() == 1 ? quick : 40; }

Bytes share(const Graph& graph, std::int64_t percent) {
  return Bytes(own_peak(graph).count() / 100 * percent);
}

LimitSettings limits(std::int64_t work, Interruptions& interruptions) {
  return {.seconds = kLong, .work = work, .interrupter = &interruptions};
}

using Texts = std::vector<std::pair<std::string, std::string>>;

void end_solver(const solve::Solver& solver, const Problem& problem, std::int64_t work,
                std::int64_t most, int threads = 1, const Texts& options = {}) {
  const solve::SolverTable table = driver::all_solvers();
  end_everywhere(most, [&](Interruptions& interruptions) {
    CAPTURE(interruptions.text());
    solve::ContextSettings settings = settings_for(solver);
    settings.limits = limits(work, interruptions);
    settings.threads = threads;
    for (const auto& [name, value] : options) settings.options.set(name, value);
    check_answer(problem, table, ask(table, solver, problem, settings));
  });
}

TEST_CASE("interruptions: of every solver") {
  const solve::SolverTable table = driver::all_solvers();
  const std::vector<Case> cases = large_cases(sanitized(150, 300));
  std::size_t turn = 0;
  for (const Order order : {Order::given, Order::free})
    for (const bool linked : {false, true}) {
      const auto asks = [&](const solve::Solver& solver, const Case& given) {
        Problem problem{
            .graph = given.graph, .budget = share(given.graph, linked ? 45 : 60), .order = order};
        if (linked) problem.machine = kMachine;
        if (!support_of(solver, problem).yes) return;
        CAPTURE(solver.name());
        CAPTURE(given.name);
        CAPTURE(to_string(order));
        CAPTURE(linked);
        end_solver(solver, problem, sanitized(5'000, 20'000), ends(2));
      };
      for (const auto& solver : table.all()) {
        // What an engine makes of its time is its own.
        if (solver->traits().has(solve::Trait::external)) continue;
        if (test_scale() == 1)
          asks(*solver, cases[turn++ % cases.size()]);
        else
          for (const Case& given : cases) asks(*solver, given);
      }
    }
}

// Each stage of it has a share of the limits, and each block one of those.
TEST_CASE("interruptions: of the hierarchy, with every partitioner and block solver") {
  const solve::SolverTable table = driver::all_solvers();
  const std::vector<Texts> ways = {
      {{"block", "cut,prices"}, {"top", "prices"}},
      {{"block", "prices,rotor"}, {"top", "rotor"}},
      {{"partition", "multilevel"}, {"block", "search,twremat,prices"}, {"top", "contracted"}},
      {{"partition", "repeat"}, {"block", "cut,prices"}, {"top", "prices,rotor,contracted"}},
      {{"partition", "chain"}, {"levels", "1"}, {"top", "rotor"}}};
  const std::size_t ops = static_cast<std::size_t>(sanitized(300, 1000));
  std::size_t turn = 0;
  for (const Order order : {Order::given, Order::free})
    for (const Texts& way : ways) {
      constexpr std::string_view kKinds[] = {"transformer", "unet", "resnet"};
      const std::string_view kind = kKinds[turn++ % std::size(kKinds)];
      CAPTURE(kind);
      CAPTURE(way.front().second);
      CAPTURE(to_string(order));
      const Graph graph = generate(kind, ops, turn);
      const Problem problem{.graph = graph, .budget = share(graph, 50), .order = order};
      Texts options = way;
      options.emplace_back("polish", "off");
      const int threads = turn % 2 == 0 ? 2 : 1;
      end_solver(*table.find("hiremate"), problem, sanitized(10'000, 100'000), ends(8), threads,
                 options);
    }
}

// From 4,000 ops on it begins with blocks.
TEST_CASE("interruptions: of auto, on graphs on which every phase runs") {
  const solve::SolverTable table = driver::all_solvers();
  struct Asked {
    std::string_view kind;
    std::size_t ops;
    Order order;
    bool linked;
    int threads;
  };
  std::vector<Asked> all = {{"transformer", 4200, Order::given, false, 1},
                            {"chain", 300, Order::given, false, 1},
                            {"unet", 300, Order::free, true, 2}};
  if (test_scale() > 1) {
    all.push_back({"unet", 4200, Order::free, false, 2});
    all.push_back({"resnet", 4200, Order::given, true, 1});
    all.push_back({"chain", 4200, Order::free, true, 2});
    all.push_back({"layered", 600, Order::free, false, 2});
  }
  for (const Asked& asked : all) {
    CAPTURE(asked.kind);
    CAPTURE(asked.ops);
    const Graph graph = generate(asked.kind, asked.ops, 1);
    Problem problem{.graph = graph, .budget = share(graph, 50), .order = asked.order};
    if (asked.linked) problem.machine = kMachine;
    const auto work = static_cast<std::int64_t>(asked.ops) * sanitized(20, 100);
    end_solver(*table.find("auto"), problem, work, ends(kSanitized ? 2 : 4), asked.threads);
  }
}

void check_point(const Problem& problem, const TradeoffPoint& point) {
  if (!point.outcome.plan) return;
  Problem asked = problem;
  asked.budget = point.budget;
  const Verdict verdict = verify(asked, *point.outcome.plan);
  CHECK(verdict.ok);
  CHECK(verdict.cost == point.outcome.cost);
}

// A network that can be planned in parts, and a generated one.
std::vector<std::pair<Graph, Techniques>> networks() {
  std::vector<std::pair<Graph, Techniques>> all;
  all.emplace_back(step_of({.batch = 96, .widths = {4, 16, 16, 12}}),
                   parse_techniques("all", false));
  all.emplace_back(three_products(), parse_techniques("all", false));
  all.emplace_back(generate("unet", 200, 1), Techniques{});
  return all;
}

TEST_CASE("interruptions: of the search for transforms") {
  const solve::SolverTable table = driver::all_solvers();
  for (const auto& [graph, techniques] : networks())
    for (const std::int64_t percent : {55, 80}) {
      if (percent == 80 && test_scale() == 1) continue;
      CAPTURE(percent);
      const Problem problem{
          .graph = graph, .budget = share(graph, percent), .techniques = techniques};
      end_everywhere(ends(sanitized(4, 8)), [&](Interruptions& interruptions) {
        CAPTURE(interruptions.text());
        driver::Request request;
        request.limits = limits(sanitized(30'000, 100'000), interruptions);
        const driver::Answer answer = driver::solve(table, problem, request);
        CHECK(answer.outcome.note.find("failed") == std::string::npos);
        if (!answer.outcome.plan) return;
        const Verdict verdict = verify(problem, *answer.outcome.plan);
        CHECK(verdict.ok);
        CHECK(verdict.cost == answer.outcome.cost);
      });
    }
}

TEST_CASE("interruptions: of a curve") {
  const solve::SolverTable table = driver::all_solvers();
  for (const auto& [graph, techniques] : networks()) {
    const Problem problem{.graph = graph, .budget = Bytes::max(), .techniques = techniques};
    end_everywhere(ends(sanitized(3, 6)), [&](Interruptions& interruptions) {
      CAPTURE(interruptions.text());
      driver::CurveRequest request;
      request.terms.techniques = techniques;
      request.from = share(graph, 20);
      request.to = own_peak(graph);
      request.points = 5;
      request.settings.limits = limits(sanitized(20'000, 100'000), interruptions);
      request.settings.threads = 2;
      const Tradeoff curve = driver::curve(table, graph, request);
      for (const TradeoffPoint& point : curve.points) check_point(problem, point);
      REQUIRE(curve.smallest);
      check_point(problem, *curve.smallest);
    });
  }
}

TEST_CASE("interruptions: of a fit") {
  const solve::SolverTable table = driver::all_solvers();
  for (const auto& [graph, techniques] : networks()) {
    const Problem problem{.graph = graph, .budget = Bytes::max(), .techniques = techniques};
    end_everywhere(ends(sanitized(3, 6)), [&](Interruptions& interruptions) {
      CAPTURE(interruptions.text());
      driver::FitRequest request;
      request.terms.techniques = techniques;
      request.time_limit = graph.total_time() + Ticks(graph.total_time().count() / 10);
      request.settings.limits = limits(sanitized(20'000, 100'000), interruptions);
      request.settings.threads = 2;
      const Fit fit = driver::fit(table, graph, request);
      REQUIRE(fit.point);
      check_point(problem, *fit.point);
      CHECK(fit.point->outcome.cost.duration <= request.time_limit);
    });
  }
}

}  // namespace
}  // namespace lowtide

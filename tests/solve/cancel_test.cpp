// Cancelled from another thread, at any moment: the solver returns soon, with a plan that holds.
#include <chrono>
#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"
#include "lowtide/sim/simulate.h"

#include "solve/cases.h"
#include "solve/conformance.h"
#include "support/print.h"
#include "support/scale.h"

namespace lowtide {
namespace {

// Cancelled after so long: back with an answer that holds. How soon limits_test.cpp counts in work.
Answered ask_and_cancel(const solve::SolverTable& table, const solve::Solver& solver,
                        const Problem& problem, int wait_ms, LimitSettings limits = {}) {
  CAPTURE(wait_ms);
  CancelToken token;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    token.cancel();
  });
  solve::ContextSettings settings = settings_for(solver);
  settings.limits = limits;
  settings.limits.cancel = &token;
  Answered answered = ask(table, solver, problem, settings);
  other.join();
  check_answer(problem, table, answered);
  return answered;
}

// Under a sanitizer every third, since it is the solvers that differ there, and not the networks.
std::vector<Case> some_cases(std::size_t ops) {
  std::vector<Case> cases;
  std::size_t number = 0;
  for (Case& given : large_cases(ops))
    if (!kSanitized || test_scale() > 1 || number++ % 3 == 0) cases.push_back(std::move(given));
  return cases;
}

// Under sanitizers the first moves of a search are each held against `sim`, which does not look at
// the clock: on larger graphs that alone takes seconds.
TEST_CASE("cancel: from another thread") {
  const solve::SolverTable table = driver::all_solvers();
  for (const Case& given : some_cases(kSanitized ? 2000 : 20000)) {
    CAPTURE(given.name);
    const Problem problem{.graph = given.graph, .budget = Bytes(own_peak(given.graph).count() / 3)};
    for (const solve::Solver* solver : takers(table, problem)) {
      CAPTURE(solver->name());
      for (const int wait_ms : {0, 20}) {
        const Answered answered = ask_and_cancel(table, *solver, problem, wait_ms);
        const StopReason reason = answered.outcome.stopped_by;
        CHECK((reason == StopReason::cancelled || by_itself(reason)));
      }
    }
  }
}

TEST_CASE("cancel: from another thread, with a link to the host") {
  const solve::SolverTable table = driver::all_solvers();
  const Link link{Ticks(10000), Bytes(25), Ticks(1)};
  const auto cases = some_cases(kSanitized ? 2000 : 20000);
  for (const Case& given : cases) {
    CAPTURE(given.name);
    const Problem problem{.graph = given.graph,
                          .budget = Bytes(own_peak(given.graph).count() / 2),
                          .order = Order::given,
                          .machine = Machine{link, link}};
    for (const char* name : {"offload", "search", "auto"}) {
      CAPTURE(std::string(name));
      for (const int wait_ms : {0, 20, 300}) {
        if (wait_ms == 300 && &given != &cases.front() && test_scale() == 1) continue;
        const Answered answered = ask_and_cancel(table, *table.find(name), problem, wait_ms);
        const StopReason reason = answered.outcome.stopped_by;
        CHECK((reason == StopReason::cancelled || by_itself(reason)));
      }
    }
  }
}

TEST_CASE("cancel: two solves on two threads do not disturb each other") {
  const solve::SolverTable table = driver::all_solvers();
  const auto cases = some_cases(kSanitized ? 150 : 300);
  for (const Case& given : cases) {
    CAPTURE(given.name);
    const Problem problem{.graph = given.graph, .budget = Bytes(own_peak(given.graph).count() / 2)};
    for (const solve::Solver* solver : takers(table, problem)) {
      // An engine's presolve knows no limit of work; small graphs show the same.
      if (solver->traits().has(solve::Trait::external)) continue;
      CAPTURE(solver->name());
      const auto solve = [&] {
        solve::ContextSettings settings = settings_for(*solver);
        settings.limits.work = sanitized(10'000, 100'000);
        settings.solvers = &table;
        solve::Context context(problem, solver->name(), std::move(settings));
        return solver->solve(problem, context);
      };
      Outcome here, there;
      std::thread other([&] { there = solve(); });
      here = solve();
      other.join();
      CHECK(here.cost == there.cost);
      CHECK(here.plan.has_value() == there.plan.has_value());
      if (here.plan && there.plan) CHECK(here.plan->steps == there.plan->steps);
    }
  }
}

// At the sizes that these solvers take at most: while a program is built, sent and worked on.
TEST_CASE("cancel: solvers with engines end soon after a cancel or a deadline") {
  const solve::SolverTable table = driver::all_solvers();
  const Case given = large_cases(400).front();
  const Problem problem{.graph = given.graph,
                        .budget = Bytes(own_peak(given.graph).count() / 10 * 7),
                        .order = Order::given};
  for (const solve::Solver* solver : takers(table, problem)) {
    if (!solver->traits().has(solve::Trait::external)) continue;
    CAPTURE(solver->name());
    for (const int wait_ms : {0, 50, 200, 600}) {
      const Answered answered = ask_and_cancel(table, *solver, problem, wait_ms, {.seconds = 60});
      CHECK(answered.outcome.stopped_by == StopReason::cancelled);
    }
    solve::ContextSettings settings = settings_for(*solver);
    settings.limits.seconds = 0.6;
    const Answered answered = ask(table, *solver, problem, settings);
    CHECK(answered.outcome.stopped_by == StopReason::deadline);
  }
}

TEST_CASE("cancel: two engines at once do not disturb each other") {
  const solve::SolverTable table = driver::all_solvers();
  const Case given = large_cases(30).front();
  const Problem problem{.graph = given.graph,
                        .budget = Bytes(own_peak(given.graph).count() / 10 * 8),
                        .order = Order::given};
  for (const solve::Solver* solver : takers(table, problem)) {
    if (!solver->traits().has(solve::Trait::external)) continue;
    CAPTURE(solver->name());
    const auto solve = [&] {
      solve::ContextSettings settings = settings_for(*solver);
      settings.limits.work = 100000;
      return ask(table, *solver, problem, settings);
    };
    std::optional<Answered> there;
    std::thread other([&] { there = solve(); });
    const Answered here = solve();
    other.join();
    check_same(here, *there);
  }
}

}  // namespace
}  // namespace lowtide

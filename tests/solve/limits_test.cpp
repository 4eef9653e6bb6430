// Limits and cancels, on graphs large enough to matter: a solver counts its work as it goes, stops
// where it is told to, and then still has its best plan.
#include <algorithm>
#include <array>

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"
#include "lowtide/sim/simulate.h"

#include "solve/cases.h"
#include "solve/conformance.h"
#include "support/print.h"
#include "support/scale.h"

namespace lowtide {
namespace {

Bytes share(Bytes bytes, std::int64_t percent) { return Bytes(bytes.count() / 100 * percent); }

// 25 bytes a tick each way.
constexpr Machine kMachine = {{Ticks(10000), Bytes(25), Ticks(1)},
                              {Ticks(10000), Bytes(25), Ticks(1)}};

// Whether a link makes a difference to the solver.
bool uses_link(const solve::Solver& solver) {
  constexpr std::array kNames = {"drop", "offload", "search", "magis", "bounds", "auto"};
  return std::ranges::find(kNames, solver.name()) != kNames.end();
}

// Each solver on each large case, with a tight budget in any order and a loose one in the given
// order (the long run: both in both), and those that use a link once more with one; those that
// start an engine once. Under a sanitizer every second case.
template <class Visit>
void for_each_solve(const solve::SolverTable& table, std::int64_t ops, Visit visit) {
  bool first = true;
  int number = 0;
  const bool all = test_scale() > 1;
  for (const Case& given : large_cases(static_cast<std::size_t>(ops))) {
    if (kSanitized && !all && number++ % 2 != 0) continue;
    CAPTURE(given.name);
    for (const std::int64_t percent : {30, 80}) {
      CAPTURE(percent);
      for (const Order order : {Order::free, Order::given}) {
        if (!all && (order == Order::free) != (percent == 30)) continue;
        CAPTURE(to_string(order));
        const Problem problem{
            .graph = given.graph, .budget = share(own_peak(given.graph), percent), .order = order};
        for (const solve::Solver* solver : takers(table, problem)) {
          if (solver->traits().has(solve::Trait::external) && !first) continue;
          CAPTURE(solver->name());
          visit(*solver, problem);
        }
        first = false;
      }
      Problem linked{.graph = given.graph, .budget = share(own_peak(given.graph), percent)};
      linked.order = Order::given;
      linked.machine = kMachine;
      for (const solve::Solver* solver : takers(table, linked)) {
        if (!uses_link(*solver)) continue;
        CAPTURE("with a link");
        CAPTURE(solver->name());
        visit(*solver, linked);
      }
    }
  }
}

TEST_CASE("limits: every solver keeps a work limit and polls") {
  const solve::SolverTable table = driver::all_solvers();
  for_each_solve(table, sanitized(500, 1000),
                 [&](const solve::Solver& solver, const Problem& problem) {
                   check_work_limits(table, solver, problem);
                 });
}

// Annealing is spread over what it may spend, so another limit is another run: with luck the
// shorter one is a little better. Where nothing keeps the budget, what blocks come to is only the
// beginning of such a run. What drops gaps lowers all bytes over the budget, and not the peak
// first.
double luck(const solve::Solver& solver) {
  const std::string_view name = solver.name();
  if (name == "hiremate") return 0.1;
  return name == "search" || name == "auto" || name == "drop" ? 0.02 : 0;
}

template <class T>
bool no_more(T now, T before, double tolerance) {
  return static_cast<double>(now.count()) <= (1 + tolerance) * static_cast<double>(before.count());
}

TEST_CASE("limits: more work never makes the answer worse") {
  const solve::SolverTable table = driver::all_solvers();
  for_each_solve(table, 300, [&](const solve::Solver& solver, const Problem& problem) {
    if (solver.traits().has(solve::Trait::external)) return;  // no promise that is ours to keep
    std::optional<Outcome> before;
    for (const std::int64_t work : {0, 1'000, 10'000, 100'000, 300'000, 1'000'000}) {
      if (work > sanitized(10'000, test_scale() > 1 ? 1'000'000 : 100'000)) continue;
      solve::ContextSettings settings = settings_for(solver);
      settings.limits.work = work;
      const Answered answered = ask(table, solver, problem, settings);
      check_answer(problem, table, answered);
      const Outcome& now = answered.outcome;
      CAPTURE(work);
      if (before && before->plan) {
        REQUIRE(now.plan);
        CHECK(no_more(now.cost.duration, before->cost.duration, luck(solver)));
      }
      if (before && before->smallest_peak) {
        REQUIRE(now.smallest_peak);
        CHECK_MESSAGE(no_more(*now.smallest_peak, *before->smallest_peak, luck(solver)),
                      now.smallest_peak->count() << " after " << before->smallest_peak->count());
      }
      before = now;
    }
  });
}

TEST_CASE("limits: a solver cancelled before the start does little work") {
  const solve::SolverTable table = driver::all_solvers();
  CancelToken token;
  token.cancel();
  for_each_solve(table, 2000, [&](const solve::Solver& solver, const Problem& problem) {
    solve::ContextSettings settings = settings_for(solver);
    settings.limits.cancel = &token;
    const Answered answered = ask(table, solver, problem, settings);
    check_answer(problem, table, answered);
    CHECK(answered.work <= slack(problem.graph));
    if (!by_itself(answered.outcome.stopped_by))
      CHECK(answered.outcome.stopped_by == StopReason::cancelled);
  });
}

TEST_CASE("limits: a cancel at the first plan is seen within the units between two polls") {
  const solve::SolverTable table = solve::make_solvers();
  for_each_solve(table, 2000, [&](const solve::Solver& solver, const Problem& problem) {
    CancelToken token;
    std::int64_t cancelled_at = -1;
    solve::ContextSettings settings = settings_for(solver);
    settings.limits.cancel = &token;
    settings.watcher = [&](const solve::Progress& progress) {
      if (cancelled_at < 0) cancelled_at = progress.work;
      token.cancel();
    };
    const Answered answered = ask(table, solver, problem, settings);
    check_answer(problem, table, answered);
    REQUIRE(cancelled_at >= 0);
    CHECK(answered.work <= cancelled_at + slack(problem.graph));
  });
}

// In work, at every poll of which the clock is read; in seconds it hangs on what else the machine
// does.
TEST_CASE("limits: a passed deadline is kept at the next poll") {
  const solve::SolverTable table = driver::all_solvers();
  for_each_solve(table, sanitized(5000, 20000),
                 [&](const solve::Solver& solver, const Problem& problem) {
                   if (problem.order == Order::given) return;
                   solve::ContextSettings settings = settings_for(solver);
                   for (const double seconds : {0.0, 0.02}) {
                     settings.limits.seconds = seconds;
                     const Answered answered = ask(table, solver, problem, settings);
                     check_answer(problem, table, answered);
                     const StopReason reason = answered.outcome.stopped_by;
                     CHECK((reason == StopReason::deadline || by_itself(reason)));
                     if (seconds == 0) CHECK(answered.work <= slack(problem.graph));
                   }
                 });
}

}  // namespace
}  // namespace lowtide

// The engines themselves, where they are installed.
#include <cmath>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/engines/cp.h"
#include "lowtide/engines/find.h"
#include "lowtide/engines/mip.h"

namespace lowtide {
namespace {

#define NEED(kind)                                                \
  const engines::EngineState engine = engines::find_engine(kind); \
  if (!engine.missing.empty()) {                                  \
    MESSAGE("left out: it needs ", engine.missing);               \
    return;                                                       \
  }

// Tasks on one machine: hard enough to go on for minutes.
engines::CpModel hard_model() {
  engines::CpModel model;
  std::vector<std::int64_t> intervals;
  std::vector<engines::CpExpr> demands;
  std::vector<engines::CpTerm> goal;
  Random random(1);
  for (int i = 0; i < 40; ++i) {
    const engines::CpVar start = model.add_var(0, 600);
    const auto size = static_cast<std::int64_t>(3 + random.below(20));
    intervals.push_back(
        model.add_interval(engines::CpExpr::of(start), size, engines::CpExpr::of(start, 1, size)));
    demands.emplace_back(static_cast<std::int64_t>(1 + random.below(7)));
    goal.push_back({start, static_cast<std::int64_t>(1 + random.below(9))});
  }
  model.add_cumulative(intervals, demands, 10);
  model.minimise(goal);
  return model;
}

TEST_CASE("engines: CP-SAT solves a model with every kind of constraint") {
  NEED(engines::EngineKind::cpsat)
  engines::CpModel model;
  std::vector<engines::CpVar> x;
  for (int i = 0; i < 4; ++i) x.push_back(model.add_var(0, 9));
  const engines::CpVar present = model.add_bool(), always = model.add_var(1, 1);
  std::vector<std::int64_t> intervals;
  std::vector<engines::CpExpr> demands, starts;
  for (std::size_t i = 0; i < 4; ++i) {
    const engines::CpVar when[] = {present};
    intervals.push_back(model.add_interval(
        engines::CpExpr::of(x[i]), 2, engines::CpExpr::of(x[i], 1, 2),
        i == 3 ? engines::CpModel::Literals(when) : engines::CpModel::Literals()));
    demands.emplace_back(i == 1 ? 1 : 2);
    starts.push_back(engines::CpExpr::of(x[i]));
  }
  model.add_cumulative(intervals, demands, 3);
  model.add_all_different(starts);
  // x[1] only after x[0].
  const engines::CpExpr times[] = {engines::CpExpr::of(x[0]), engines::CpExpr::of(x[1])};
  const std::int64_t changes[] = {1, -1};
  const engines::CpVar active[] = {always, always};
  model.add_reservoir(times, changes, active, 0);
  const engines::CpVar either[] = {present, engines::cp_not(always)};
  model.add_or(either);
  const engines::CpVar ones[] = {present, engines::cp_not(present)};
  model.add_exactly_one(ones);
  model.add_at_most_one(ones);
  model.add_and(std::span(&present, 1), std::span(&always, 1));
  const engines::CpTerm goal[] = {{x[0], 1}, {x[1], 2}, {x[2], 3}, {x[3], 4}};
  model.minimise(goal);
  model.add_hint(x[0], 0);
  engines::EngineLimits limits;
  limits.seconds = 20;
  const engines::CpAnswer answer = engines::solve_cp(model, engine, limits);
  CHECK(answer.end.failure == "");
  REQUIRE(answer.end.status == engines::EngineStatus::optimal);
  const auto& v = answer.values;
  REQUIRE(v.size() == model.var_count());
  CHECK(v[0] < v[1]);
  CHECK(v[4] == 1);
  const double cost = static_cast<double>(v[0] + 2 * v[1] + 3 * v[2] + 4 * v[3]);
  CHECK(*answer.end.bound == doctest::Approx(cost));
}

TEST_CASE("engines: CP-SAT reports while it runs, and stops at its time") {
  NEED(engines::EngineKind::cpsat)
  engines::EngineLimits limits;
  limits.seconds = 8;
  limits.threads = 2;
  int incumbents = 0, objectives = 0, bounds = 0;
  engines::CpWatch watch;
  watch.incumbent = [&](std::span<const std::int64_t>) { ++incumbents; };
  watch.objective = [&](double) { ++objectives; };
  watch.bound = [&](double) { ++bounds; };
  const engines::CpAnswer answer = engines::solve_cp(hard_model(), engine, limits, watch);
  CHECK(answer.end.failure == "");
  CHECK(answer.end.status == engines::EngineStatus::feasible);
  CHECK(objectives > 1);
  CHECK(bounds > 0);
  CHECK(incumbents > 1);
  CHECK(answer.end.bound);
}

TEST_CASE("engines: CP-SAT without a time limit repeats exactly") {
  NEED(engines::EngineKind::cpsat)
  engines::EngineLimits limits;
  limits.effort = 0.3;
  const engines::CpAnswer one = engines::solve_cp(hard_model(), engine, limits);
  const engines::CpAnswer two = engines::solve_cp(hard_model(), engine, limits);
  CHECK(one.end.failure == "");
  CHECK(one.values == two.values);
  CHECK(one.end.effort == two.end.effort);
}

TEST_CASE("engines: a cancel ends CP-SAT as soon as it is asked for") {
  NEED(engines::EngineKind::cpsat)
  for (const int most : {1, 20, 60}) {  // polls, of which each waits a little
    engines::EngineLimits limits;
    limits.seconds = 60;
    limits.threads = 2;
    int asked = 0;
    limits.stop = [&] { return ++asked >= most; };
    const engines::CpAnswer answer = engines::solve_cp(hard_model(), engine, limits);
    CHECK(answer.end.stopped);
    CHECK(asked <= most + 1);  // while it starts and while it runs
  }
}

TEST_CASE("engines: CP-SAT with two threads keeps within a gigabyte") {
  NEED(engines::EngineKind::cpsat)
  engines::EngineLimits limits;
  limits.seconds = 2;
  limits.threads = 2;
  limits.memory_bytes = std::int64_t{1} << 30;
  const engines::CpAnswer answer = engines::solve_cp(hard_model(), engine, limits);
  CHECK(answer.end.failure == "");
  CHECK(answer.end.status == engines::EngineStatus::feasible);
}

TEST_CASE("engines: HiGHS solves programs, relaxed and whole") {
  NEED(engines::EngineKind::highs)
  engines::MipModel model;
  // A knapsack: 5, 4 and 3 for 2, 3 and 1 of 5.
  const double worth[] = {5, 4, 3}, weight[] = {2, 3, 1};
  std::vector<engines::MipTerm> terms;
  for (int i = 0; i < 3; ++i)
    terms.push_back({model.add_column(-worth[i], {0, 1}, true), weight[i]});
  model.add_row(terms, {-engines::MipModel::kInfinity, 5});
  model.add_start(0, 1);
  engines::EngineLimits limits;
  limits.seconds = 20;
  limits.threads = 2;
  limits.memory_bytes = std::int64_t{1} << 30;
  int incumbents = 0;
  engines::MipWatch watch;
  watch.incumbent = [&](std::span<const double>) { ++incumbents; };
  const engines::MipAnswer answer = engines::solve_mip(model, engine, limits, watch);
  CHECK(answer.end.failure == "");
  REQUIRE(answer.end.status == engines::EngineStatus::optimal);
  CHECK(*answer.end.bound == doctest::Approx(-9));
  CHECK(std::lround(answer.values[0] + answer.values[1] + answer.values[2]) == 2);
  CHECK(incumbents > 0);

  engines::MipModel relaxed;
  terms.clear();
  for (int i = 0; i < 3; ++i)
    terms.push_back({relaxed.add_column(-worth[i], {0, 1}, false), weight[i]});
  relaxed.add_row(terms, {-engines::MipModel::kInfinity, 5});
  const engines::MipAnswer lp = engines::solve_mip(relaxed, engine, limits);
  REQUIRE(lp.end.status == engines::EngineStatus::optimal);
  CHECK(*lp.end.bound == doctest::Approx(-8 - 8.0 / 3));

  engines::MipModel impossible;
  const engines::MipTerm one[] = {{impossible.add_column(1, {0, 1}, true), 1}};
  impossible.add_row(one, {2, 3});
  CHECK(engines::solve_mip(impossible, engine, limits).end.status ==
        engines::EngineStatus::infeasible);

  engines::MipSession session(engine);
  for (int i = 0; i < 3; ++i) {
    CHECK(session.solve(impossible, limits).end.status == engines::EngineStatus::infeasible);
    const engines::MipAnswer again = session.solve(model, limits);
    REQUIRE(again.end.status == engines::EngineStatus::optimal);
    CHECK(*again.end.bound == doctest::Approx(-9));
  }
  limits.threads = 1;
  CHECK(session.solve(model, limits).end.status == engines::EngineStatus::optimal);
}

}  // namespace
}  // namespace lowtide

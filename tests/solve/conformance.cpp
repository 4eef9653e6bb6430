// One assertion for each sentence that problem.h, outcome.h, context.h and solver.h promise.
#include "solve/conformance.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/peak_floor.h"

#include "oracles/brute_force_transfers.h"
#include "support/judge.h"
#include "support/print.h"
#include "support/random_plan.h"
#include "support/scale.h"

namespace lowtide {

namespace {

constexpr std::int64_t kExternalWork = 2'000'000;  // about two seconds

auto rank(const Problem& problem, const Cost& cost) {
  return problem.objective == Objective::least_time
             ? std::tuple(cost.duration.count(), cost.peak.count())
             : std::tuple(cost.peak.count(), cost.duration.count());
}

void check_plan(const Problem& problem, const Plan& plan, const Cost& claimed) {
  const Verdict verdict = judge(problem, plan);
  const std::string why = verdict.violation ? verdict.violation->reason : "";
  CHECK_MESSAGE(verdict.ok, why);
  CHECK(verdict.cost == claimed);
  const bool may_transfer = problem.machine.has_value();
  CHECK((may_transfer || !transfers(plan)));
}

void check_history(const Problem& problem, const Answered& answered) {
  const Outcome& outcome = answered.outcome;
  CHECK(outcome.history.empty() == !outcome.plan.has_value());
  const Incumbent* before = nullptr;
  for (const Incumbent& incumbent : outcome.history) {
    CHECK(incumbent.cost.peak <= problem.budget);
    CHECK(incumbent.cost.duration >= outcome.bound.duration);
    CHECK(incumbent.seconds >= 0);
    CHECK(incumbent.seconds <= answered.seconds);
    CHECK(incumbent.work <= answered.work);
    if (before != nullptr) {
      CHECK(rank(problem, incumbent.cost) < rank(problem, before->cost));
      CHECK(incumbent.seconds >= before->seconds);
      CHECK(incumbent.work >= before->work);
    }
    before = &incumbent;
  }
  if (before != nullptr) CHECK(before->cost == outcome.cost);
}

}  // namespace

Answered ask(const solve::SolverTable& table, const solve::Solver& solver, const Problem& problem,
             solve::ContextSettings settings) {
  settings.solvers = &table;
  // Limits are part of the question; a watcher that is there already sees everything first.
  const solve::Watcher outer = std::move(settings.watcher);
  settings.watcher = [&](const solve::Progress& progress) {
    if (outer) outer(progress);
    if (progress.plan != nullptr) check_plan(problem, *progress.plan, progress.cost);
    CHECK(progress.solver == solver.name());
  };
  solve::Context context(problem, solver.name(), std::move(settings));
  Answered answered;
  answered.outcome = solver.solve(problem, context);
  answered.work = context.limits().work();
  answered.polls = context.limits().polls();
  answered.seconds = context.limits().seconds();
  return answered;
}

solve::ContextSettings settings_for(const solve::Solver& solver) {
  solve::ContextSettings settings;
  settings.options = solve::Options(solver.options());
  return settings;
}

void check_answer(const Problem& problem, const solve::SolverTable& table,
                  const Answered& answered) {
  const Outcome& outcome = answered.outcome;
  const bool claims_plan = outcome.status == Status::optimal || outcome.status == Status::feasible;
  CHECK(claims_plan == outcome.plan.has_value());
  if (outcome.plan) {
    check_plan(problem, *outcome.plan, outcome.cost);
    CHECK(outcome.bound.duration <= outcome.cost.duration);
    CHECK(outcome.bound.peak <= outcome.cost.peak);
    CHECK(table.find(outcome.found_by) != nullptr);
  }
  if (outcome.smallest_peak) {
    CHECK(outcome.bound.peak <= *outcome.smallest_peak);
    if (outcome.plan)
      CHECK(*outcome.smallest_peak <= outcome.cost.peak);
    else
      CHECK(*outcome.smallest_peak == outcome.cost.peak);
  } else {
    CHECK_FALSE(outcome.plan);
  }
  CHECK(outcome.bound.duration >= problem.graph.total_time());
  CHECK(outcome.bound.peak >= solve::peak_floor(problem));
  if (outcome.status == Status::optimal || outcome.status == Status::infeasible)
    CHECK(outcome.stopped_by == StopReason::finished);
  // To have nothing more to try is no answer.
  if (outcome.status == Status::unknown) CHECK(outcome.stopped_by != StopReason::finished);
  if (outcome.plan) CHECK(outcome.stopped_by != StopReason::gave_up);
  check_history(problem, answered);
}

std::vector<oracle::Schedule> all_tradeoffs(const Problem& problem) {
  if (!problem.machine) return oracle::all_tradeoffs(problem.graph, problem.order);
  return oracle::all_tradeoffs(problem.graph,
                               {problem.order, *problem.machine, problem.host_budget});
}

void check_truth(const Problem& problem, const Outcome& outcome,
                 const std::vector<oracle::Schedule>& curve) {
  if (curve.empty()) {  // the host's budget cannot be kept
    CHECK_FALSE(outcome.plan);
    return;
  }
  const Bytes leanest = curve.back().peak;
  CHECK(outcome.bound.peak <= leanest);
  if (outcome.smallest_peak) CHECK(*outcome.smallest_peak >= leanest);
  const Ticks limit = problem.time_limit.value_or(Ticks::max());
  std::optional<Cost> best;  // by the objective
  for (const oracle::Schedule& schedule : curve) {
    if (schedule.peak > problem.budget || schedule.duration > limit) continue;
    const Cost cost{schedule.duration, schedule.peak, Bytes(0)};
    if (!best || rank(problem, cost) < rank(problem, *best)) best = cost;
  }
  if (outcome.status == Status::infeasible) CHECK_FALSE(best);
  if (best) CHECK(outcome.bound.duration <= oracle::least_duration(curve, problem.budget));
  if (!outcome.plan) return;
  REQUIRE(best);
  if (problem.objective == Objective::least_time) {
    CHECK(outcome.cost.duration >= best->duration);
    if (outcome.status == Status::optimal) CHECK(outcome.cost.duration == best->duration);
  } else {
    CHECK(outcome.cost.peak >= best->peak);
    if (outcome.status == Status::optimal) CHECK(outcome.cost.peak == best->peak);
  }
}

void check_same(const Answered& a, const Answered& b) {
  CHECK(a.outcome.status == b.outcome.status);
  CHECK(a.outcome.stopped_by == b.outcome.stopped_by);
  REQUIRE(a.outcome.plan.has_value() == b.outcome.plan.has_value());
  if (a.outcome.plan) CHECK(a.outcome.plan->steps == b.outcome.plan->steps);
  if (a.outcome.plan) CHECK(a.outcome.plan->machine == b.outcome.plan->machine);
  CHECK(a.outcome.cost == b.outcome.cost);
  CHECK(a.outcome.smallest_peak == b.outcome.smallest_peak);
  CHECK(a.outcome.bound.duration == b.outcome.bound.duration);
  CHECK(a.outcome.bound.peak == b.outcome.bound.peak);
  CHECK(a.outcome.found_by == b.outcome.found_by);
  CHECK(a.outcome.note == b.outcome.note);
  CHECK(a.work == b.work);
  REQUIRE(a.outcome.history.size() == b.outcome.history.size());
  for (std::size_t i = 0; i < a.outcome.history.size(); ++i) {
    CHECK(a.outcome.history[i].cost == b.outcome.history[i].cost);
    CHECK(a.outcome.history[i].work == b.outcome.history[i].work);
  }
}

void examine(const solve::SolverTable& table, const Problem& base, std::uint64_t seed,
             const std::vector<oracle::Schedule>& curve) {
  Random random(seed);
  const Bytes own = own_peak(base.graph);
  Problem problem = base;
  for (const Bytes budget : telling_budgets(base, curve)) {
    problem.budget = budget;
    CAPTURE(budget.count());
    for (const solve::Solver* solver : takers(table, problem)) {
      // These take tenths of a second to begin, and some graphs of seven ops take minutes.
      const bool external = solver->traits().has(solve::Trait::external);
      if (external && !random.chance(kSanitized ? 0.002 : 0.01)) continue;
      CAPTURE(solver->name());
      solve::ContextSettings settings = settings_for(*solver);
      settings.seed = seed;
      settings.options = random_options(random, *solver);
      if (random.chance(0.3)) {
        // Its steps are legal over any link.
        const bool transfers = base.machine.has_value();
        Plan start = random_plan(random, base.graph, {.order = base.order, .transfers = transfers});
        start.machine = base.machine;
        settings.starts.push_back(std::move(start));
      }
      if (random.chance(0.3))
        settings.limits.work = random.between(0, 200);
      else if (external)
        settings.limits.work = kExternalWork;
      const Answered answered = ask(table, *solver, problem, settings);
      check_answer(problem, table, answered);
      check_truth(problem, answered.outcome, curve);
      if (!settings.limits.work) CHECK(by_itself(answered.outcome.stopped_by));
      const bool easy = budget >= own && problem.objective == Objective::least_time;
      if (easy && !settings.limits.work) CHECK(answered.outcome.plan);
      if (random.chance(0.25)) {
        settings.threads = 2;
        check_same(answered, ask(table, *solver, problem, settings));
      }
    }
  }
}

namespace {

// Not for solvers that are made of others, which count those when they return, or work in another
// process.
void check_polls(const solve::Solver& solver, const Problem& problem, const Answered& answered) {
  const solve::Traits traits = solver.traits();
  if (traits.has(solve::Trait::portfolio) || traits.has(solve::Trait::external)) return;
  CHECK(answered.work <= (answered.polls + 1) * slack(problem.graph));
  // No solver can look at the whole graph for nothing.
  CHECK(answered.work >= static_cast<std::int64_t>(problem.graph.op_count()));
}

}  // namespace

void check_work_limits(const solve::SolverTable& table, const solve::Solver& solver,
                       const Problem& problem) {
  Answered answered;
  // Solvers that are made of others come to their later parts with more work.
  const bool many = solver.traits().has(solve::Trait::portfolio);
  const std::int64_t most = sanitized(5'000, many ? 100'000 : 30'000);
  for (const std::int64_t work : {0, 1, 2'000, 5'000, 30'000, 100'000, 1'000'000}) {
    if (work > (test_scale() > 1 ? sanitized(30'000, 1'000'000) : most)) continue;
    if (work == 5'000 && !kSanitized) continue;
    CAPTURE(work);
    solve::ContextSettings settings = settings_for(solver);
    settings.limits.work = work;
    settings.seed = 3;
    answered = ask(table, solver, problem, settings);
    check_answer(problem, table, answered);
    CHECK(answered.work <= work + slack(problem.graph));
    const StopReason reason = answered.outcome.stopped_by;
    CHECK((by_itself(reason) || reason == StopReason::work_limit));
    if (reason == StopReason::work_limit) CHECK(answered.work >= work);
    settings.threads = 3;
    check_same(answered, ask(table, solver, problem, settings));
  }
  check_polls(solver, problem, answered);
}

std::vector<Bytes> telling_budgets(const Problem& problem,
                                   const std::vector<oracle::Schedule>& curve) {
  const Bytes own = own_peak(problem.graph), floor = solve::peak_floor(problem), one(1);
  std::vector<Bytes> budgets = {Bytes(0), floor - one, floor,       own - one,
                                own,      own + own,   Bytes::max()};
  for (const oracle::Schedule& schedule : curve) {
    budgets.push_back(schedule.peak - one);
    budgets.push_back(schedule.peak);
  }
  std::erase_if(budgets, [](Bytes budget) { return budget < Bytes(0); });
  std::sort(budgets.begin(), budgets.end());
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

std::int64_t slack(const Graph& graph) {
  return Limits::kPollWork +
         static_cast<std::int64_t>(graph.op_count() + graph.tensor_count() + graph.link_count());
}

solve::Options random_options(Random& random, const solve::Solver& solver) {
  solve::Options options(solver.options());
  for (const solve::OptionSpec& spec : solver.options()) {
    if (random.chance(0.5)) continue;
    if (!spec.choices.empty()) {
      options.set(spec.name, spec.choices[random.below(spec.choices.size())]);
    } else {
      // Each of a hundred peaks with each of a hundred saves is a budget for every block.
      const bool multiplies = spec.name == "peaks" || spec.name == "saves";
      const double high = multiplies ? std::min(spec.high, 12.0) : spec.high;
      const double drawn = spec.low + random.uniform() * (high - spec.low);
      const double values[] = {spec.low, high, spec.default_number, drawn};
      const std::string some = spec.of_ops && random.chance(0.5) ? "*:" : "";
      const double value = values[random.below(4)];
      options.set(spec.name, some + std::to_string(spec.whole ? std::floor(value) : value));
    }
  }
  return options;
}

std::vector<const solve::Solver*> takers(const solve::SolverTable& table, const Problem& problem) {
  std::vector<const solve::Solver*> result;
  for (const auto& solver : table.all()) {
    const solve::Support support = support_of(*solver, problem);
    CHECK(support.yes == support.reason.empty());
    if (support.yes && solver->missing().empty()) result.push_back(solver.get());
  }
  return result;
}

}  // namespace lowtide

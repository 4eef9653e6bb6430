// The gate: nothing that a solver says passes here without having been looked at.
#include "lowtide/driver/driver.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/driver/allowed_graph.h"
#include "lowtide/driver/auto/auto.h"
#include "lowtide/driver/live_limits.h"
#include "lowtide/driver/transform_reduction.h"
#include "lowtide/driver/transform_search.h"
#include "lowtide/sim/verify.h"

namespace lowtide::driver {

namespace {

const solve::Solver& find_solver(const solve::SolverTable& solvers, const std::string& name) {
  if (const solve::Solver* found = solvers.find(name)) return *found;
  std::string names;
  for (const auto& solver : solvers.all())
    names += (names.empty() ? "" : ", ") + std::string(solver->name());
  throw InputError("solver \"" + name + "\"", "there is none of that name; there are: " + names);
}

void examine(const Problem& problem, const solve::Solver& solver, const Outcome& outcome) {
  const auto demand = [&](bool holds, const std::string& what) {
    if (!holds) throw InternalError("solver " + std::string(solver.name()) + ": " + what);
  };
  const bool has_plan = outcome.status == Status::optimal || outcome.status == Status::feasible;
  demand(has_plan == outcome.plan.has_value(), "its status and its plan contradict each other");
  if (!has_plan) return;
  const Verdict verdict = verify(problem, *outcome.plan);
  demand(verdict.ok, "its plan does not verify: " + (verdict.ok ? "" : verdict.violation->reason));
  demand(verdict.cost == outcome.cost, "its plan does not cost what it claims");
  demand(outcome.bound.duration <= outcome.cost.duration && outcome.bound.peak <= outcome.cost.peak,
         "its bound is above its own plan");
}

// Of a problem without limits of single ops. `seen`: the plan with the smallest peak of all that
// were seen.
Answer run(const solve::SolverTable& solvers, const solve::Solver& solver, const Problem& problem,
           const Request& request, bool may_transform, std::optional<Plan>& seen) {
  solve::ContextSettings settings{.limits = request.limits,
                                  .seed = request.seed,
                                  .threads = request.threads,
                                  .options = solve::Options(solver.options()),
                                  .starts = request.starts,
                                  .known = request.known,
                                  .solvers = &solvers,
                                  .watcher = request.watcher,
                                  .transforms = may_transform};
  for (const auto& [name, value] : request.options) settings.options.set(name, value);
  // The same steps over other links are a plan all the same, of another duration.
  for (Plan& start : settings.starts)
    if (start.machine && problem.machine) start.machine = problem.machine;
  // A plan of another graph or in a forbidden order is nothing to begin from.
  Problem unlimited = problem;
  unlimited.budget = Bytes::max();
  unlimited.time_limit.reset();
  std::erase_if(settings.starts, [&](const Plan& start) { return !verify(unlimited, start).ok; });
  Answer answer;
  // Its clock begins before an engine is looked for.
  solve::Context context(problem, solver.name(), std::move(settings));
  const auto over = [&context] { return context.limits().over(); };
  const std::string missing = solver.missing(over);
  // Where there was no time to find out, the solver stops as it does at any moment.
  answer.support = missing.empty() || over() ? support_of(solver, problem)
                                             : solve::Support::no("it needs " + missing);
  if (!answer.support.yes) {
    // What is true of every problem is true of this one.
    solve::Context untried(problem, solver.name(), {});
    untried.set_note(answer.support.reason);
    answer.outcome = untried.finish();
    return answer;
  }
  // A solver may make nothing of its starts; then they still are answers.
  for (const Plan& start : context.starts()) context.offer(start, "start");
  answer.outcome = solver.solve(problem, context);
  answer.work = context.limits().work();
  answer.repair_start = context.repair_start();
  seen = context.smallest();
  if (const Outcome& found = answer.outcome;
      !found.plan || (found.smallest_peak && *found.smallest_peak < found.cost.peak))
    answer.smallest = seen;
  examine(problem, solver, answer.outcome);
  return answer;
}

// Of a problem without transforms.
Answer solve_on_graph(const solve::SolverTable& solvers, const solve::Solver& solver,
                      const Problem& asked, const Request& request, bool may_transform) {
  const AllowedGraph allowed(asked.graph, asked.techniques);
  const Problem problem = allowed.problem(asked);
  std::optional<Plan> seen;
  Answer answer;
  if (problem.live_limits.empty()) {
    answer = run(solvers, solver, problem, request, may_transform, seen);
    if (&problem.graph == &asked.graph) return answer;  // examined as it was asked
  } else {
    WithoutLimits without(problem);
    Request told = request;
    told.watcher = without.told_to(request.watcher);
    answer = run(solvers, solver, without.problem(), told, false, seen);
    without.bring_back(answer.outcome, seen);
  }
  examine(asked, solver, answer.outcome);
  return answer;
}

// With the problem's transforms, none or some.
Answer solve_as_said(const solve::SolverTable& solvers, const solve::Solver& solver,
                     const Problem& asked, const Request& request) {
  if (asked.transforms.empty()) {
    const bool may = solver.traits().has(solve::Trait::transforms) &&
                     (asked.techniques.split || asked.techniques.hoist);
    return solve_on_graph(solvers, solver, asked, request, may);
  }
  const TransformReduction reduction(asked);
  Request told = request;
  told.starts = reduction.starts_for(request.starts);
  told.watcher = reduction.told_to(request.watcher);
  Answer answer = solve_on_graph(solvers, solver, reduction.problem(), told, false);
  reduction.bring_back(answer.outcome.plan);
  reduction.bring_back(answer.repair_start);
  reduction.bring_back(answer.smallest);
  examine(asked, solver, answer.outcome);
  return answer;
}

}  // namespace

LimitSettings limits_or_default(std::optional<double> seconds, std::optional<std::int64_t> work,
                                const CancelToken& cancel) {
  constexpr double kDefaultSeconds = 10;
  LimitSettings limits{.seconds = seconds, .work = work, .cancel = &cancel};
  if (!seconds && !work) limits.seconds = kDefaultSeconds;
  return limits;
}

int threads_or_all(int threads) {
  if (threads > 0) return threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

solve::SolverTable all_solvers() {
  solve::SolverTable table = solve::make_solvers();
  table.add(make_auto());
  return table;
}

bool looks_for_transforms(const solve::SolverTable& solvers, std::string_view solver,
                          const Problem& problem) {
  const solve::Solver* asked = solvers.find(solver);
  if (asked == nullptr || !may_transform(problem)) return false;
  return asked->traits().has(solve::Trait::portfolio) ||
         asked->traits().has(solve::Trait::transforms);
}

Answer solve(const solve::SolverTable& solvers, const Problem& asked, const Request& request) {
  const solve::Solver& solver = find_solver(solvers, request.solver);
  require_plannable(asked);
  const auto said = [&](const Problem& problem, const Request& how) {
    return solve_as_said(solvers, solver, problem, how);
  };
  Answer answer;
  if (solver.traits().has(solve::Trait::portfolio) && may_transform(asked)) {
    answer = search_transforms(asked, request, said);
    examine(asked, solver, answer.outcome);
  } else {
    answer = said(asked, request);
  }
  add_note(answer.outcome, failures_text(answer.outcome.parts));
  return answer;
}

}  // namespace lowtide::driver

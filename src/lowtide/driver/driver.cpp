// Reduces a question to a problem, runs one solver on it, converts the answer back, and verifies
// it.
#include "lowtide/driver/driver.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/driver/auto/auto.h"
#include "lowtide/driver/gate.h"
#include "lowtide/driver/reduction_stack.h"
#include "lowtide/driver/transform_search.h"
#include "lowtide/sim/verify.h"

namespace lowtide::driver {

namespace {

// Of the seconds, for moving the network ops of the plan that the solver has found.
constexpr double kOverlapShare = 0.05;

const solve::Solver& find_solver(const solve::SolverTable& solvers, const std::string& name) {
  if (const solve::Solver* found = solvers.find(name)) return *found;
  std::string names;
  for (const auto& solver : solvers.all())
    names += (names.empty() ? "" : ", ") + std::string(solver->name());
  throw InputError("solver \"" + name + "\"", "there is none of that name; there are: " + names);
}

// Whether the solver may add transforms of its own. With network ops its problem is a reduced one,
// and prices of parts are for the original.
bool may_offer_transforms(const solve::Solver& solver, const Question& question) {
  const Techniques& techniques = question.problem.techniques;
  return solver.traits().has(solve::Trait::transforms) && question.transforms.empty() &&
         question.live_limits.empty() && (techniques.split || techniques.hoist) &&
         !question.problem.graph.has_network_ops();
}

// Runs the solver on a reduced problem. `transform_prices` is null if plans may have no transforms.
// `smallest` of the answer is set if any plan was seen.
Answer run(const solve::SolverTable& solvers, const solve::Solver& solver, const Problem& problem,
           Request request, const Prices* transform_prices) {
  solve::ContextSettings settings{.limits = request.limits,
                                  .seed = request.seed,
                                  .threads = request.threads,
                                  .options = solve::Options(solver.options()),
                                  .starts = std::move(request.starts),
                                  .known = request.known,
                                  .solvers = &solvers,
                                  .watcher = std::move(request.watcher),
                                  .transform_prices = transform_prices};
  for (const auto& [name, value] : request.options) settings.options.set(name, value);
  // Plans of another graph or in a forbidden order are no start plans.
  Problem unlimited = problem;
  unlimited.budget = Bytes::max();
  unlimited.time_limit.reset();
  std::erase_if(settings.starts, [&](const Plan& start) { return !verify(unlimited, start).ok; });
  Answer answer;
  // The limits begin before an engine is searched.
  solve::Context context(problem, solver.name(), std::move(settings));
  const auto over = [&context] { return context.limits().over(); };
  const std::string missing = solver.missing(over);
  // If there was no time for that search, the solver stops as at any deadline.
  answer.support = missing.empty() || over() ? support_of(solver, problem)
                                             : solve::Support::no("it needs " + missing);
  if (!answer.support.yes) {
    // Bounds that hold for every problem.
    solve::Context untried(problem, solver.name(), {});
    untried.set_note(answer.support.reason);
    answer.outcome = untried.finish();
    return answer;
  }
  // If the solver ignores its start plans, they still count as plans.
  for (const Plan& start : context.starts()) context.offer(start, "start");
  answer.outcome = solver.solve(problem, context);
  answer.work = context.limits().work();
  answer.repair_start = context.repair_start();
  answer.smallest = context.smallest();
  return answer;
}

// Reduces the question, runs the solver, and converts its answer back. The plan is verified on the
// reduced graph if that differs from the question's graph; the caller verifies it on the question's
// own graph.
Answer solve_reduced(const solve::SolverTable& solvers, const solve::Solver& solver,
                     const Question& original, Request request, Gate& gate) {
  const ReductionStack reductions = reductions_for(original, request.limits);
  if (original.problem.graph.has_network_ops() && request.limits.seconds)
    *request.limits.seconds *= 1 - kOverlapShare;
  request.starts = reductions.starts(std::move(request.starts));
  request.watcher = reductions.translate(std::move(request.watcher));
  Answer answer = run(solvers, solver, reductions.problem(), std::move(request),
                      may_offer_transforms(solver, original) ? &original.prices : nullptr);
  if (reductions.is_graph_reduced()) gate.verify({reductions.problem()}, answer.outcome);
  reductions.bring_back(answer);
  if (const Outcome& outcome = answer.outcome;
      outcome.plan && !(outcome.smallest_peak && *outcome.smallest_peak < outcome.cost.peak))
    answer.smallest.reset();
  return answer;
}

// The same steps over the full link are a plan too, with another duration.
Request over_link_of(const Problem& problem, Request request) {
  for (Plan& start : request.starts)
    if (start.machine && problem.machine) start.machine = problem.machine;
  return request;
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
                          const Question& question) {
  const solve::Solver* found = solvers.find(solver);
  if (found == nullptr || !may_transform(question)) return false;
  return found->traits().has(solve::Trait::portfolio) ||
         found->traits().has(solve::Trait::transforms);
}

Answer solve(const solve::SolverTable& solvers, const Question& question, const Request& request) {
  const solve::Solver& solver = find_solver(solvers, request.solver);
  require_plannable(question.problem);
  const Request with_link = over_link_of(question.problem, request);
  Gate gate(solver.name());
  Answer answer;
  if (solver.traits().has(solve::Trait::portfolio) && may_transform(question)) {
    answer = search_transforms(question, with_link, [&](const Question& trial, const Request& how) {
      Answer found = solve_reduced(solvers, solver, trial, how, gate);
      gate.check_claims(found.outcome);
      return found;
    });
  } else {
    answer = solve_reduced(solvers, solver, question, with_link, gate);
  }
  gate.verify(question, answer.outcome);
  answer.verifications = gate.verifications();
  add_note(answer.outcome, failures_text(answer.outcome.parts));
  return answer;
}

Answer solve(const solve::SolverTable& solvers, const Problem& problem, const Request& request) {
  return solve(solvers, Question{problem}, request);
}

}  // namespace lowtide::driver

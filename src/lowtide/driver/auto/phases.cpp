#include "lowtide/driver/auto/phases.h"

#include <algorithm>
#include <array>

#include "lowtide/driver/auto/runner.h"
#include "lowtide/graph/cuts.h"
#include "lowtide/graph/phases.h"

namespace lowtide::driver {

namespace {

using solve::Solver;
using solve::Trait;

constexpr std::int64_t kLarge = 4'000;       // ops: from here on blocks come before all else
constexpr std::int64_t kSmall = 100;         // ops: up to here the bounds settle most problems
constexpr std::int64_t kMostEngineOps = 200;
constexpr double kEngineFrom = 0.1;          // of the limits
constexpr int kLanes = 4;                    // of an epoch without a clock
constexpr std::int64_t kTightWork = 4;       // times that of another constructive solver
constexpr std::int64_t kLinkWork = 150;      // for each op: several runs find a price of the link

// Work with which nearly every constructive solver comes to its end on some thousand ops.
std::int64_t constructive_work(const Runner& run, const Solver& solver) {
  const std::int64_t work = 20'000 + 10 * run.ops();
  if (!solver.traits().has(Trait::tight)) return work;
  return kTightWork * work + (run.problem().machine ? kLinkWork * run.ops() : 0);
}

std::vector<const Solver*> constructive(const Runner& run) {
  std::vector<const Solver*> found = run.solvers(Trait::constructive);
  for (const Solver* guest : run.guests())
    if (std::ranges::find(found, guest) == found.end()) found.push_back(guest);
  return found;
}

bool is_missing_plan(const Runner& run) { return !run.has_plan(); }

// Whether at nearly every place of the forward a single tensor goes on to what comes behind it.
bool is_chain(const Graph& graph) {
  const Phases phases = phases_of(graph);
  if (!phases.has_backward) return false;
  std::size_t forward = 0;
  while (phases.of[graph.order()[forward]] == lowtide::Phase::forward) ++forward;
  return forward > 1 && 10 * tensor_cuts(graph, 0, forward).size() >= 9 * (forward - 1);
}

// Blocks without a backward half have nothing to save for it.
bool may_have_backward(const Graph& graph) {
  return std::ranges::any_of(graph.order(), [&](OpId op) {
    return graph.is_barrier(op) || graph.op(op).phase == "backward";
  });
}

std::vector<Task> bounds(Runner& run, double share) {
  Task task = run.task(run.first(Trait::proving), 10'000 + 5 * run.ops(), share);
  task.without_link = run.problem().machine.has_value();
  task.repeats = task.in_given_order;
  return {task};
}

std::vector<Task> blocks(Runner& run, double share) {
  Task task = run.task(run.first(Trait::blocks), 200 * run.ops(), share);
  task.options = {
      {"partition", "h_partition"}, {"block", "cut,prices"}, {"top", "prices"}, {"polish", "off"}};
  return {task};
}

// Each gets the same part of the share, and those for tight budgets more, whose plan is the best
// start on most networks.
std::vector<Task> construct(Runner& run, double share) {
  const std::vector<const Solver*> solvers = constructive(run);
  std::int64_t all = 0;
  for (const Solver* solver : solvers) all += constructive_work(run, *solver);
  std::vector<Task> tasks;
  for (const Solver* solver : solvers) {
    const std::int64_t work = constructive_work(run, *solver);
    const double part = share * static_cast<double>(work) / static_cast<double>(all);
    tasks.push_back(run.task(solver, work, part));
  }
  return tasks;
}

std::vector<Task> chain(Runner& run, double share) {
  Task task = run.task(run.first(Trait::blocks), 300 * run.ops(), share);
  task.options = {{"partition", "chain"}, {"levels", "1"}, {"top", "rotor"}, {"polish", "off"}};
  return {task};
}

std::vector<Task> construct_tight(Runner& run, double share) {
  std::vector<Task> tasks;
  for (const Solver* solver : constructive(run))
    if (solver->traits().has(Trait::tight))
      tasks.push_back(run.task(solver, 2'000 * run.ops(), share));
  return tasks;
}

// The first of the table that is for nothing else.
std::vector<Task> tight(Runner& run, double share) {
  for (const Solver* solver : run.solvers(Trait::tight)) {
    const solve::Traits traits = solver->traits();
    if (!traits.has(Trait::guest) && !traits.has(Trait::constructive))
      return {run.task(solver, 50 * (1000 + run.ops()), share)};
  }
  return {};
}

std::vector<Task> engine(Runner& run, double share) {
  const Solver* solver = run.engine();
  if (solver == nullptr) return {};
  Task task = run.task(solver, std::int64_t{1} << 40, share);
  task.threads = run.threads();
  task.once = true;
  task.options = {{"mode", "frontier"}};
  return {task};
}

// Where the search stands still the bounds get as much work as a lane.
std::vector<Task> proofs(Runner& run, double share) {
  const auto slice = static_cast<double>(run.epoch().slice);
  return run.proof(static_cast<std::int64_t>(run.epoch().stands ? slice : share * slice));
}

std::vector<Task> again(Runner& run, double share) {
  const auto work =
      static_cast<std::int64_t>(share * static_cast<double>(run.epoch().slice));
  std::vector<Task> tasks;
  for (const Solver* solver :
       run.first(Trait::anytime) != nullptr ? run.guests() : constructive(run))
    tasks.push_back(run.task(solver, work, 1));
  return tasks;
}

std::vector<Task> lanes(Runner& run, double share) {
  std::vector<Task> tasks;
  const int count = run.clocked() ? run.threads() : kLanes;
  for (int lane = 0; lane < count; ++lane) {
    tasks.push_back(run.lane(lane));
    tasks.back().work = static_cast<std::int64_t>(share * static_cast<double>(tasks.back().work));
  }
  return tasks;
}

constexpr std::array<Phase, 11> kPhases = {{
    {"bounds", "the bounds, briefly: their cut leaves a first plan", When::once, .06,
     [](const Runner& run) {
       return run.first(Trait::proving) != nullptr && !run.problem().graph.has_tensors_on_host();
     },
     bounds},
    {"blocks", "a plan made of blocks, which large graphs repeat", When::once, .2,
     [](const Runner& run) {
       return run.ops() >= kLarge && run.context().starts().empty() &&
              may_have_backward(run.problem().graph) && run.first(Trait::blocks) != nullptr;
     },
     blocks},
    {"construct", "the constructive solvers, each from the best plan so far", When::once, .2,
     [](const Runner&) { return true; }, construct},
    {"chain", "the dynamic program over chains, where the graph is one", When::once, .2,
     [](const Runner& run) {
       return run.ops() <= kLarge && run.first(Trait::blocks) != nullptr &&
              is_chain(run.problem().graph);
     },
     chain},
    {"longer", "constructive solvers for tight budgets again, where there is no plan", When::once,
     .5, is_missing_plan, construct_tight},
    {"tight", "a solver for the tightest budgets, where there is no plan", When::once, .2,
     is_missing_plan, tight},
    {"settle", "the bounds, on small graphs", When::once, 1,
     [](const Runner& run) { return run.ops() <= kSmall && run.first(Trait::proving) != nullptr; },
     [](Runner& run, double) { return run.proof(200 * run.ops()); }},
    {"engine", "an engine, once: to prove the plan of a small graph under a clock", When::alone, .6,
     [](const Runner& run) {
       return run.clocked() && !run.context().limits().settings().work && run.has_plan() &&
              run.problem().order == Order::given && run.ops() <= kMostEngineOps &&
              run.epoch().proves && run.epoch().stands &&
              run.context().limits().used() > kEngineFrom;
     },
     engine},
    {"proofs", "the bounds", When::before_search, .33,
     [](const Runner& run) { return run.epoch().proves && run.first(Trait::proving) != nullptr; },
     proofs},
    {"again", "solvers of the user's own, until they finish", When::before_search, .25,
     [](const Runner& run) {
       return run.epoch().number > 0 || run.first(Trait::anytime) == nullptr;
     },
     again},
    {"lanes", "the search from the best plan, in lanes that differ in their recipes", When::search,
     1, [](const Runner& run) { return run.first(Trait::anytime) != nullptr; }, lanes},
}};

}  // namespace

std::span<const Phase> phases() { return kPhases; }

}  // namespace lowtide::driver

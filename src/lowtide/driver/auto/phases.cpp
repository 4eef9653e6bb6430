#include "lowtide/driver/auto/phases.h"

#include <algorithm>
#include <array>

#include "lowtide/driver/auto/state.h"
#include "lowtide/graph/cuts.h"
#include "lowtide/graph/phases.h"

namespace lowtide::driver {

namespace {

using solve::Solver;
using solve::Trait;

constexpr std::int64_t kLarge = 4'000;  // ops: larger graphs are first planned in blocks
constexpr std::int64_t kSmall = 100;    // ops: on smaller graphs the bounds settle most problems
constexpr std::int64_t kMostEngineOps = 200;
constexpr double kEngineFrom = 0.1;      // share of the limits used before an engine runs
constexpr int kLanes = 4;                // of an epoch without a time limit
constexpr std::int64_t kTightWork = 4;   // factor, relative to other constructive solvers
constexpr std::int64_t kLinkWork = 150;  // more for each op with a link: `drop` runs several times

// The most work of a constructive solver. Nearly all of them finish within it on graphs of some
// thousand ops.
std::int64_t constructive_work(const AutoState& state, const Solver& solver) {
  const std::int64_t work = 20'000 + 10 * state.ops();
  if (!solver.traits().has(Trait::tight)) return work;
  return kTightWork * work + (state.problem().machine ? kLinkWork * state.ops() : 0);
}

// The constructive solvers, then all other solvers that the user has registered.
std::vector<const Solver*> constructive(const AutoState& state) {
  std::vector<const Solver*> found = state.solvers(Trait::constructive);
  for (const Solver* guest : state.guests())
    if (std::ranges::find(found, guest) == found.end()) found.push_back(guest);
  return found;
}

bool is_missing_plan(const AutoState& state) { return !state.has_plan(); }

// Whether at nine of ten positions of the forward a single tensor is live across the position.
bool is_chain(const Graph& graph) {
  const Phases phases = phases_of(graph);
  if (!phases.has_backward) return false;
  std::size_t forward = 0;
  while (phases.of[graph.order()[forward]] == lowtide::Phase::forward) ++forward;
  return forward > 1 && 10 * tensor_cuts(graph, 0, forward).size() >= 9 * (forward - 1);
}

// Whether the graph may have a backward. Without one, blocks have no tensors to save for it.
bool may_have_backward(const Graph& graph) {
  return std::ranges::any_of(graph.order(), [&](OpId op) {
    return graph.is_barrier(op) || graph.op(op).phase == "backward";
  });
}

// Without the link, since a cut with tensors on the host gives no plan. Bounds of the problem with
// its link or with its free order follow in the phase `proofs`.
std::vector<Task> bounds(AutoState& state, double share) {
  Task task =
      state.task_in_given_order(state.first(Trait::proving), 10'000 + 5 * state.ops(), share);
  task.without_link = state.problem().machine.has_value();
  task.repeats = task.in_given_order;
  return {task};
}

std::vector<Task> blocks(AutoState& state, double share) {
  Task task = state.task_in_given_order(state.first(Trait::blocks), 200 * state.ops(), share);
  task.options = {
      {"partition", "h_partition"}, {"block", "cut,prices"}, {"top", "prices"}, {"polish", "off"}};
  return {task};
}

// Constructive solvers share the work equally, except that those for tight budgets get more: their
// plan is the best start on most networks.
std::vector<Task> construct(AutoState& state, double share) {
  const std::vector<const Solver*> solvers = constructive(state);
  std::int64_t all = 0;
  for (const Solver* solver : solvers) all += constructive_work(state, *solver);
  std::vector<Task> tasks;
  for (const Solver* solver : solvers) {
    const std::int64_t work = constructive_work(state, *solver);
    const double part = share * static_cast<double>(work) / static_cast<double>(all);
    tasks.push_back(state.task(solver, work, part));
    // However small the limits are: with less work even a small graph gets no plan.
    tasks.back().work = std::max(tasks.back().work, 100 + 10 * state.ops());
  }
  return tasks;
}

std::vector<Task> chain(AutoState& state, double share) {
  Task task = state.task_in_given_order(state.first(Trait::blocks), 300 * state.ops(), share);
  task.options = {{"partition", "chain"}, {"levels", "1"}, {"top", "rotor"}, {"polish", "off"}};
  return {task};
}

std::vector<Task> construct_tight(AutoState& state, double share) {
  std::vector<Task> tasks;
  for (const Solver* solver : constructive(state))
    if (solver->traits().has(Trait::tight))
      tasks.push_back(state.task(solver, 2'000 * state.ops(), share));
  return tasks;
}

// The solvers that are for tight budgets only, each with the same fraction of the share.
std::vector<Task> tight(AutoState& state, double share) {
  std::vector<const Solver*> solvers = state.solvers(Trait::tight);
  std::erase_if(solvers, [](const Solver* solver) {
    const solve::Traits traits = solver->traits();
    return traits.has(Trait::guest) || traits.has(Trait::constructive);
  });
  std::vector<Task> tasks;
  tasks.reserve(solvers.size());
  for (const Solver* solver : solvers)
    tasks.push_back(state.task_in_given_order(solver, 50 * (1000 + state.ops()),
                                              share / static_cast<double>(solvers.size())));
  return tasks;
}

std::vector<Task> engine(AutoState& state, double share) {
  const Solver* solver = state.engine();
  if (solver == nullptr) return {};
  Task task = state.task(solver, kMostWork, share);
  task.threads = state.threads();
  task.once = true;
  task.options = {{"mode", "frontier"}};
  return {task};
}

// If the last epoch found no better plan, the bounds get as much work as a lane.
std::vector<Task> proofs(AutoState& state, double share) {
  const auto slice = static_cast<double>(state.epoch().slice);
  return state.proof(static_cast<std::int64_t>(state.epoch().stands ? slice : share * slice));
}

// If the table of solvers has no search, the constructive solvers run in every epoch instead.
std::vector<Task> again(AutoState& state, double share) {
  const auto work = static_cast<std::int64_t>(share * static_cast<double>(state.epoch().slice));
  std::vector<Task> tasks;
  for (const Solver* solver :
       state.first(Trait::anytime) != nullptr ? state.guests() : constructive(state))
    tasks.push_back(state.task(solver, work, 1));
  return tasks;
}

std::vector<Task> lanes(AutoState& state, double share) {
  std::vector<Task> tasks;
  const LaneTerms terms = state.lane_terms();
  const int count = state.has_time_limit() ? state.threads() : kLanes;
  for (int lane = 0; lane < count; ++lane) {
    tasks.push_back(state.lane(lane, terms));
    tasks.back().work = static_cast<std::int64_t>(share * static_cast<double>(tasks.back().work));
  }
  return tasks;
}

constexpr std::array<Phase, 11> kPhases = {{
    {"bounds", "lower bounds with little work; their minimum cut gives a first plan", When::once,
     .06,
     [](const AutoState& state) {  // a graph with tensors on the host needs its link
       return state.first(Trait::proving) != nullptr &&
              !state.problem().graph.has_tensors_on_host();
     },
     bounds},
    {"blocks", "a plan by hierarchical partition, for large graphs", When::once, .2,
     [](const AutoState& state) {
       return state.ops() >= kLarge && state.context().starts().empty() &&
              may_have_backward(state.problem().graph) && state.first(Trait::blocks) != nullptr;
     },
     blocks},
    {"construct", "the constructive solvers, each from the best plan so far", When::once, .1,
     [](const AutoState&) { return true; }, construct},
    {"chain", "the dynamic program over chains, for graphs that are nearly one", When::once, .2,
     [](const AutoState& state) {
       return state.ops() <= kLarge && state.first(Trait::blocks) != nullptr &&
              is_chain(state.problem().graph);
     },
     chain},
    {"longer", "constructive solvers for tight budgets, with more work, while there is no plan",
     When::once, .5, is_missing_plan, construct_tight},
    {"tight", "the other solvers for tight budgets, while there is no plan", When::once, .3,
     is_missing_plan, tight},
    {"settle", "lower bounds with more work, on small graphs", When::once, 1,
     [](const AutoState& state) {
       return state.ops() <= kSmall && state.first(Trait::proving) != nullptr;
     },
     [](AutoState& state, double) { return state.proof(200 * state.ops()); }},
    {"engine", "an engine, once, under a time limit: to prove the plan of a small graph optimal",
     When::alone, .6,
     [](const AutoState& state) {
       return state.has_time_limit() && !state.context().limits().settings().work &&
              state.has_plan() && state.problem().order == Order::given &&
              state.ops() <= kMostEngineOps && state.epoch().proves && state.epoch().stands &&
              state.context().limits().used() > kEngineFrom;
     },
     engine},
    {"proofs", "lower bounds, in each epoch", When::before_search, .33,
     [](const AutoState& state) {
       return state.epoch().proves && state.first(Trait::proving) != nullptr;
     },
     proofs},
    {"again", "registered solvers, in each epoch until they finish", When::before_search, .25,
     [](const AutoState& state) {
       return state.epoch().number > 0 || state.first(Trait::anytime) == nullptr;
     },
     again},
    {"lanes", "the search from the best plan, in several lanes with different recipes",
     When::search, 1, [](const AutoState& state) { return state.first(Trait::anytime) != nullptr; },
     lanes},
}};

}  // namespace

std::span<const Phase> phases() { return kPhases; }

}  // namespace lowtide::driver

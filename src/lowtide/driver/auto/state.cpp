#include "lowtide/driver/auto/state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lowtide/plan/events.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::driver {

namespace {

using solve::Trait;
using solve::Traits;

// The phase `proofs` begins in epoch kFirstProof (of 0, 1, ...), or once kProofShare of the limits
// is used, since a proof takes longer than the search to gain anything.
constexpr std::uint64_t kFirstProof = 3;
constexpr double kProofShare = 0.4;
// Work of a lane for each op; with less the lane is brief: it cannot cool down.
constexpr std::int64_t kBriefWork = 200;
constexpr double kLookShare = 0.2;  // share of the time left in which an engine must be found

bool contains(const std::vector<const solve::Solver*>& solvers, const solve::Solver* solver) {
  return std::ranges::find(solvers, solver) != solvers.end();
}

Problem in_given_order(Problem problem) {
  problem.order = Order::given;
  return problem;
}

}  // namespace

AutoState::AutoState(const Problem& problem, solve::Context& context, const AutoSettings& settings)
    : problem_(problem),
      given_(in_given_order(problem)),
      context_(context),
      has_time_limit_(context.limits().settings().seconds.has_value()),
      threads_(std::max(1, context.threads())),
      ops_(static_cast<std::int64_t>(problem.graph.op_count())),
      recipe_choice_(settings.recipe_weights),
      order_choice_(settings.order_weights) {
  if (context.solvers() != nullptr)
    for (const auto& solver : context.solvers()->all()) {
      if (support_of(*solver, problem_).yes) takers_.push_back(solver.get());
      if (support_of(*solver, given_).yes) given_takers_.push_back(solver.get());
    }
  // In the first epoch. Without any limit the whole run is short.
  epoch_.slice = unlimited() ? 200 + 20 * static_cast<std::int64_t>(problem.graph.link_count())
                             : 20'000 + 4 * ops_;
}

void AutoState::begin_epoch() {
  epoch_.proves = epoch_.number >= kFirstProof || context_.limits().used() > kProofShare ||
                  !context_.has_plan() || problem_.machine.has_value();
  epoch_.stands = best_duration() == std::exchange(last_duration_, best_duration());
}

void AutoState::end_epoch() {
  ++epoch_.number;
  epoch_.slice = std::min(2 * epoch_.slice, kMostWork);
  recipe_choice_.age();
  order_choice_.age();
}

LaneTerms AutoState::lane_terms() const {
  LaneTerms terms{.brief = epoch_.slice < kBriefWork * ops_,
                  .link = problem_.machine.has_value(),
                  .has_plan = context_.has_plan(),
                  .free_order = problem_.order == Order::free};
  if (!terms.has_plan) return terms;
  const std::vector<OpId> best = computations(context_.best());
  terms.reordered = terms.free_order && !solve::follows_order(problem_.graph, best);
  if (terms.link) return terms;
  const auto repeats = static_cast<std::int64_t>(best.size()) - ops_;
  const Ticks time = problem_.graph.total_time();
  if (repeats <= 0 || time == Ticks(0)) return terms;
  const Ticks excess = context_.best_cost().duration - context_.bound().duration;
  terms.excess = static_cast<double>(excess.count()) / static_cast<double>(time.count()) *
                 static_cast<double>(ops_) / static_cast<double>(repeats);
  return terms;
}

bool AutoState::left_out(const solve::Solver* solver) const { return contains(left_out_, solver); }

bool AutoState::takes(const solve::Solver& solver) const { return contains(takers_, &solver); }

bool AutoState::takes_given(const solve::Solver& solver) const {
  return contains(given_takers_, &solver);
}

std::vector<const solve::Solver*> AutoState::solvers(Trait trait) const {
  if (context_.solvers() == nullptr) return {};
  std::vector<const solve::Solver*> found = context_.solvers()->with(trait);
  std::erase_if(found, [&](const solve::Solver* solver) {
    return solver->traits().has(Trait::external) || left_out(solver) ||
           (!takes(*solver) && !takes_given(*solver));
  });
  return found;
}

const solve::Solver* AutoState::first(Trait trait) const {
  for (const solve::Solver* solver : solvers(trait))
    if (!solver->traits().has(Trait::guest)) return solver;
  return nullptr;
}

std::vector<const solve::Solver*> AutoState::guests() const {
  std::vector<const solve::Solver*> found = solvers(Trait::guest);
  std::erase_if(found, [](const solve::Solver* solver) {
    Traits purposes = solver->traits();
    purposes.remove(Trait::guest);
    purposes.remove(Trait::transfers);
    return purposes.empty();
  });
  return found;
}

// Looking for an engine may be slow, so the time for it is limited, and an engine that was not
// found is not looked for again.
const solve::Solver* AutoState::engine() {
  const double most =
      context_.limits().seconds() + context_.limits().remaining(kLookShare).seconds.value_or(0);
  const auto stops = [&] { return context_.limits().over() || context_.limits().seconds() > most; };
  if (context_.solvers() == nullptr) return nullptr;
  for (const solve::Solver* solver : context_.solvers()->with(Trait::proving)) {
    const Traits traits = solver->traits();
    if (traits.has(Trait::external) && !traits.has(Trait::guest) && !left_out(solver) &&
        takes(*solver)) {
      if (solver->missing(stops).empty()) return solver;
      leave_out(solver);
      return nullptr;
    }
  }
  return nullptr;
}

Task AutoState::task(const solve::Solver* solver, std::int64_t work, double share) const {
  return {.solver = solver,
          .work = std::min(work, context_.limits().remaining(share).work.value_or(work)),
          .share = share,
          .seed = context_.seed(),
          .in_given_order = !takes(*solver)};
}

Task AutoState::task_in_given_order(const solve::Solver* solver, std::int64_t work,
                                    double share) const {
  Task made = task(solver, work, share);
  made.in_given_order = problem_.order == Order::free && takes_given(*solver);
  return made;
}

std::vector<Task> AutoState::proof(std::int64_t work) {
  work = std::min(work, context_.limits().remaining().work.value_or(work));
  const solve::Solver* solver = first(Trait::proving);
  if (work < 2 * longest_proof_ || !takes(*solver)) return {};
  longest_proof_ = work;
  return {task(solver, work, 1)};
}

// Lanes differ in their random numbers and in their recipes.
Task AutoState::lane(int number, const LaneTerms& terms) {
  const solve::Solver* solver = first(Trait::anytime);
  const LaneChoice choice{
      .recipe = recipe_choice_.next([&](std::size_t i) { return recipes()[i].suits(terms); }),
      .order = order_choice_.next([&](std::size_t i) { return order_recipes()[i].suits(terms); })};
  Task lane{.solver = solver,
            .work = epoch_.slice,
            .seed = Random(context_.seed() * 0x9e3779b97f4a7c15u + epoch_.number * 1024 +
                           static_cast<std::uint64_t>(number))
                        .next(),
            .in_given_order = !takes(*solver),
            .repeats = true,
            .lane = choice};
  if (choice.recipe != Choice::kNone) lane.options = texts_of(recipes()[choice.recipe], terms);
  if (choice.order != Choice::kNone)
    std::ranges::move(texts_of(order_recipes()[choice.order]), std::back_inserter(lane.options));
  return lane;
}

// The reward of a lane: the time by which it shortened the best plan, relative to the best lane of
// the same epoch.
void AutoState::learn(const std::vector<Task>& tasks, Ticks before) {
  const auto won = [&](const Task& task) {
    if (!task.lane || !task.outcome || !task.outcome->plan) return 0.0;
    if (before == Ticks::max()) return 1.0;
    return static_cast<double>(std::max(Ticks(0), before - task.outcome->cost.duration).count());
  };
  double most = 0;
  for (const Task& task : tasks) most = std::max(most, won(task));
  if (most == 0) return;
  for (const Task& task : tasks) {
    if (!task.lane || !task.outcome) continue;
    const auto [recipe, order] = *task.lane;
    if (recipe != Choice::kNone) recipe_choice_.learn(recipe, won(task) / most);
    if (order != Choice::kNone) order_choice_.learn(order, won(task) / most);
  }
}

}  // namespace lowtide::driver

// Problem: choose regions and their parts, recomputations, and transfers, all together.
//
// Idea: a state is a fission of the F-Tree with recomputations and copies. States are in a
// priority queue: states over the limit by their excess, others by the objective. The best is
// expanded by every rule. New states (by hash) that are not much worse than the best of all are
// inserted. Both objectives are one search with the two figures exchanged.
//
// Source: MAGIS (R. Chen et al., ASPLOS 2024), Algorithm 3. Different here: candidates are
// deduplicated and priced on the base graph's ops (evaluate.cpp). Only a state that would be the
// new best is built, placed and simulated; an error of the estimate then corrects the estimates of
// its fission. From each state rules are applied one after the other, best by time lost per byte
// saved, while that helps; the paper needs an expansion for each such step. Every second expanded
// state is of the fission that was expanded least, since otherwise one more step in the leading
// fission always beats a first look at another.
//
// Invariant: every offered plan was simulated on its transformed graph.
//
// Loses: to searches that move computations freely, on graphs without a long axis: all
// recomputations stand right before their readers.
#include "lowtide/solve/magis/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lowtide/plan/events.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/magis/schedule.h"
#include "lowtide/solve/sequence/placement.h"

namespace lowtide::solve::magis {

namespace {

constexpr std::size_t kMostWaiting = 4000;
constexpr std::size_t kHotSpots = 48, kUndone = 96;  // of a state that is expanded
constexpr double kStep = 0.97;                       // of the peak, the next target
constexpr double kWorthWaiting = 0.98;               // of the peak of the last that waits
constexpr std::size_t kMostOrdered = 4'000;          // ops

double as_double(Bytes bytes) { return static_cast<double>(bytes.count()); }
double as_double(Ticks ticks) { return static_cast<double>(ticks.count()); }

}  // namespace

Search::Search(const Problem& problem, Context& context)
    : problem_(problem),
      context_(context),
      limits_(context.limits()),
      least_memory_(problem.objective == Objective::least_memory),
      limit_(least_memory_ ? as_double(problem.time_limit.value_or(Ticks::max()))
                           : as_double(problem.budget)),
      delta_(context.options().number("delta")) {}

void Search::run() {
  limits_.spend_all(
      static_cast<std::int64_t>(problem_.graph.op_count() + problem_.graph.link_count()) / 16 + 1);
  // Tensors that begin on the host need a solver that plans copies for them.
  if (context_.offer_events(own_events(problem_.graph))) least_ = problem_.graph.total_time();
  if (is_settled()) return;
  begin();
  const double patience =
      context_.options().number("patience") * static_cast<double>(problem_.graph.op_count());
  while (!is_settled() && static_cast<double>(since_better_) <= patience) {
    const auto number = next();
    if (!number) break;
    const State state = std::move(states_.at(*number));
    states_.erase(*number);
    const Key key = key_of(state);
    if (!built_ || key < *built_) build(state);
    if (limits_.stopped()) break;
    ++since_better_;
    ++expanded_;
    ++known_[state.fission].expanded;
    expand(state);
  }
  // As for a problem with these transforms.
  if (context_.may_transform() && context_.has_plan()) context_.raise_bound(least_);
  if (made_ > 0 || candidates_ > 0)
    context_.set_note(std::to_string(candidates_) + " candidates were estimated, " +
                      std::to_string(expanded_) + " states expanded, " + std::to_string(made_) +
                      " made");
}

bool Search::is_settled() const {
  if (context_.done()) return true;
  return !least_memory_ && context_.has_plan() &&
         context_.best_cost().duration <= problem_.graph.total_time();
}

void Search::choose_base() {
  base_.graph = &problem_.graph;
  if (!context_.may_transform()) return;
  prices_ = context_.transform_prices();
  Applied from = rewrite::hoisted(problem_.graph, prices_.device_or_default(), prices_.table.get(),
                                  problem_.techniques.hoist);
  base_.transforms = std::move(from.transforms);
  base_.made = std::move(from.now);
  base_.graph = &base_.made->graph;
  if (!problem_.techniques.split) return;
  const auto stops = [&] { return limits_.spend(static_cast<std::int64_t>(order_.size()) / 4); };
  tree_ = rewrite::fission_tree(
      *base_.graph, static_cast<std::int64_t>(context_.options().number("levels")), stops);
  pricer_.emplace(*base_.graph, prices_.device_or_default(), prices_.table.get());
}

void Search::begin() {
  choose_base();
  const Graph& graph = *base_.graph;
  order_.assign(graph.order().begin(), graph.order().end());
  const bool may_copy = problem_.machine && too_long(problem_).empty();
  views_.emplace(graph, tree_, pricer_ ? &*pricer_ : nullptr,
                 may_copy ? &*problem_.machine : nullptr);
  evaluator_.emplace(graph);
  rules_.emplace(
      graph, RuleSettings{problem_.techniques.recompute, may_copy, context_.options().on("chains")},
      limits_);
  builder_.emplace(problem_, base_, tree_, prices_.device_or_default(), prices_.table.get());
  const std::size_t whole = fission_of(rewrite::Fission(tree_.nodes.size(), 1));
  // All views begin with this new order.
  order_ = known_[whole].view->order;
  add(whole, {}, estimate(*known_[whole].view, {}, limit_, Evaluator::Hash::computed));
}

Estimate Search::estimate(const View& view, const Actions& actions, double target,
                          Evaluator::Hash hashed) {
  ++candidates_;
  const Estimate found = evaluator_->estimate(view, actions, target, hashed);
  limits_.spend(1 + static_cast<std::int64_t>(evaluator_->events().size()) / 16);
  return found;
}

// The id of a fission; a new one if the fission is new.
std::size_t Search::fission_of(const rewrite::Fission& fission) {
  const auto [at, fresh] = fission_ids_.try_emplace(fission, known_.size());
  if (!fresh) return at->second;
  auto view = views_->view(fission, order_);
  limits_.spend(1 + static_cast<std::int64_t>(order_.size()) / 4);
  Known& known = known_.emplace_back();
  if (view) known.view = ordered(std::move(view));
  return at->second;
}

// Applies Algorithm 2 around the peak of the view; to the whole order for the untransformed graph.
std::unique_ptr<View> Search::ordered(std::unique_ptr<View> view) {
  if (problem_.order == Order::given || !context_.options().on("reorder") ||
      view->order.size() > kMostOrdered || view->order.size() < 2)
    return view;
  const Graph& graph = *base_.graph;
  const Estimate before = estimate(*view, {}, limit_);
  const OpId fullest = evaluator_->events()[before.fullest].at;
  // The stretch within its region, or between regions.
  std::size_t first = view->place[fullest.index()], last = first + 1;
  const auto same = [&](std::size_t at) {
    return view->region[view->order[at].index()] == view->region[fullest.index()];
  };
  const Task middle = static_cast<Task>(first);
  while (first > 0 && same(first - 1)) --first;
  while (last < view->order.size() && same(last)) ++last;
  const auto [tasks, ops] = tasks_of(graph, *view, first, last);
  std::vector<Task> order(tasks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Task>(i);
  const Task changed[] = {static_cast<Task>(middle - first)};
  Effort effort;
  effort.limits = &limits_;
  std::vector<std::vector<Task>> tried;
  if (view->regions.empty())
    tried.push_back(full_schedule(tasks, order, effort));
  else
    tried.push_back(incremental_schedule(tasks, order, changed, effort));
  tried.push_back(repaired_schedule(tasks, tried.back(), changed, effort));
  std::unique_ptr<View> best = std::move(view);
  double least = before.peak;
  for (const auto& found : tried) {
    auto other = std::make_unique<View>(*best);
    std::vector<OpId> run;
    run.reserve(found.size());
    for (const Task task : found) run.push_back(ops[task]);
    reorder(graph, *other, first, run);
    const double peak = estimate(*other, {}, limit_).peak;
    if (peak >= least) continue;
    least = peak;
    best = std::move(other);
  }
  return best;
}

Search::Key Search::key_of(double peak, double time) const {
  return least_memory_ ? Key{std::max(time, limit_), peak, time}
                       : Key{std::max(peak, limit_), time, peak};
}

Search::Key Search::key_of(const State& state) const {
  const Known& known = known_[state.fission];
  return key_of(state.estimate.peak * known.peak, state.estimate.time * known.time);
}

bool Search::is_kept(const State& state) const {
  if (!best_) return true;
  const Known& known = known_[state.fission];
  const Key relaxed =
      key_of(state.estimate.peak * known.peak / delta_, state.estimate.time * known.time / delta_);
  return std::tie(relaxed.over, relaxed.main) <= std::tie(best_->over, best_->main);
}

void Search::file(std::uint64_t number, const State& state) {
  const auto place = std::tuple(key_of(state), number);
  queue_.insert(place);
  known_[state.fission].waiting.insert(place);
}

void Search::add(std::size_t fission, Actions actions, const Estimate& found) {
  if (!seen_.insert(found.hash).second) return;
  State state{fission, std::move(actions), found};
  if (!is_kept(state)) return;
  const Key key = key_of(state);
  if (!best_ || key < *best_) {
    best_ = key;
    since_better_ = 0;
  }
  file(next_number_, state);
  states_.emplace(next_number_++, std::move(state));
  if (queue_.size() <= kMostWaiting) return;
  const auto worst = *queue_.rbegin();
  const auto at = states_.find(std::get<1>(worst));
  known_[at->second.fission].waiting.erase(worst);
  states_.erase(at);
  queue_.erase(worst);
}

// Takes the best state, or the best state of the fission that was expanded least. Keys may be out
// of date: states that became worse are filed again.
std::optional<std::uint64_t> Search::next() {
  const bool spread = context_.options().on("spread") && expanded_ % 2 == 1;
  while (!queue_.empty()) {
    auto place = *queue_.begin();
    if (spread) {
      const Known* least = nullptr;
      for (const Known& known : known_) {
        if (known.waiting.empty()) continue;
        if (least == nullptr || std::pair(known.expanded, *known.waiting.begin()) <
                                    std::pair(least->expanded, *least->waiting.begin()))
          least = &known;
      }
      place = *least->waiting.begin();
    }
    const std::uint64_t number = std::get<1>(place);
    const State& state = states_.at(number);
    queue_.erase(place);
    known_[state.fission].waiting.erase(place);
    if (key_of(state) > std::get<0>(place)) {
      file(number, state);
      continue;
    }
    return number;
  }
  return std::nullopt;
}

void Search::expand(const State& state) {
  move_fission(state);
  if (!limits_.stopped()) schedule(state);
  if (!limits_.stopped() && context_.options().on("rollout")) roll_out(state);
}

void Search::move_fission(const State& state) {
  const auto enable =
      context_.options().choice("enable") == "any" ? rewrite::Enable::any : rewrite::Enable::leaves;
  const rewrite::Fission now = known_[state.fission].view->fission;
  for (const rewrite::FissionMove& move : rewrite::fission_moves(tree_, now, enable, false)) {
    if (limits_.stopped()) return;
    const std::size_t fission = fission_of(move.after);
    const auto view = known_[fission].view;
    if (!view) continue;
    Actions actions = rules_->allowed(*view, state.actions);
    const Estimate found = estimate(*view, actions, limit_, Evaluator::Hash::computed);
    add(fission, std::move(actions), found);
  }
}

// Applies single rules to hot spots, and their inverses to earlier actions.
void Search::schedule(const State& state) {
  const auto view = known_[state.fission].view;
  const Estimate here = estimate(*view, state.actions, limit_);
  std::vector<HotSpot> spots = rules_->hot_spots(*view, *evaluator_, here.fullest);
  if (spots.size() > kHotSpots) spots.resize(kHotSpots);
  std::vector<Actions> changed;
  const auto take = [&](std::optional<Rules::Change> change) {
    if (change) changed.push_back(std::move(change->actions));
  };
  for (const HotSpot& spot : spots) {
    if (rules_->settings().chains)
      take(rules_->recomputed(*view, *evaluator_, state.actions, spot, true));
    take(rules_->recomputed(*view, *evaluator_, state.actions, spot, false));
    take(rules_->fetched(*view, *evaluator_, state.actions, spot));
  }
  const auto groups = Rules::groups(state.actions);
  const std::size_t every = 1 + groups.size() / kUndone;
  for (std::size_t i = 0; i < groups.size(); i += every)
    changed.push_back(Rules::without(state.actions, groups[groups.size() - 1 - i]));
  for (Actions& actions : changed) {
    if (limits_.stopped()) return;
    const Estimate found = estimate(*view, actions, limit_, Evaluator::Hash::computed);
    add(state.fission, std::move(actions), found);
  }
}

// Applies one rule to one hot spot: among those with the least time per byte, the one with the
// least time per byte removed above the target. False if no rule removes any.
bool Search::step_down(const View& view, State& state, double target) {
  constexpr std::size_t kTried = 64, kEstimated = 5;
  constexpr double kTiny = 1e-6;  // of the time, so that bytes decide among those that take none
  const std::size_t estimated =
      std::clamp<std::size_t>(5000 / std::max<std::size_t>(1, view.order.size()), 1, kEstimated);
  const Estimate here = estimate(view, state.actions, target);
  std::vector<HotSpot> spots = rules_->hot_spots(view, *evaluator_, here.fullest);
  if (spots.size() > kTried) spots.resize(kTried);
  std::vector<std::pair<double, Rules::Change>> changes;
  const double least = kTiny * std::max(1.0, here.time);
  for (const HotSpot& spot : spots) {
    const auto take = [&](std::optional<Rules::Change> change) {
      if (change) changes.emplace_back((change->time + least) / spot.bytes, std::move(*change));
    };
    take(rules_->recomputed(view, *evaluator_, state.actions, spot, rules_->settings().chains));
    take(rules_->fetched(view, *evaluator_, state.actions, spot));
  }
  limits_.spend(1 + static_cast<std::int64_t>(changes.size()));
  std::ranges::stable_sort(changes, {}, [](const auto& one) { return one.first; });
  double best = std::numeric_limits<double>::infinity();
  State found;
  // Tries more hot spots if the first do not help.
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (limits_.stopped()) return false;
    if (i >= estimated && best < std::numeric_limits<double>::infinity()) break;
    Actions& actions = changes[i].second.actions;
    const Estimate then = estimate(view, actions, target);
    const double off = here.over - then.over;
    if (off <= 0) continue;
    const double cost = (std::max(0.0, then.time - here.time) + least) / off;
    if (cost >= best) continue;
    best = cost;
    found = {state.fission, std::move(actions), then};
  }
  if (best == std::numeric_limits<double>::infinity()) return false;
  state = std::move(found);
  return true;
}

// Undoes actions that the target does not need, the most expensive first.
void Search::shed(const View& view, State& state, double target) {
  std::vector<std::pair<double, std::uint32_t>> groups;
  for (const Action& action : state.actions) {
    const double time = action.kind == Action::Kind::recompute
                            ? static_cast<double>(view.time[action.index])
                            : static_cast<double>(view.in[action.index]) * kWorthWaiting;
    if (groups.empty() || groups.back().second != action.group)
      groups.emplace_back(0, action.group);
    groups.back().first += time;
  }
  std::ranges::stable_sort(groups, std::greater{}, [](const auto& one) { return one.first; });
  for (const auto& [time, group] : groups) {
    if (limits_.stopped()) return;
    Actions actions = Rules::without(state.actions, group);
    if (actions.size() == state.actions.size()) continue;
    const Estimate then = estimate(view, actions, target);
    if (then.peak > target || then.time > state.estimate.time) continue;
    state.actions = std::move(actions);
    state.estimate = then;
  }
}

void Search::roll_out(const State& from) {
  const auto view = known_[from.fission].view;
  const Known& known = known_[from.fission];
  State state = from;
  double waits = state.estimate.peak;  // of the latest that was filed
  const double most_time =
      (least_memory_                    ? limit_
       : best_ && best_->over <= limit_ ? best_->main * delta_
                                        : std::numeric_limits<double>::infinity()) /
      known.time;
  const double enough = least_memory_ ? 0 : limit_ / known.peak;
  while (!limits_.stopped()) {
    if (state.estimate.peak <= enough) break;
    const double target = std::max(enough, kStep * state.estimate.peak);
    State next = state;
    // Applies rules until the target is met or no rule removes any bytes.
    while (next.estimate.peak > target && !limits_.stopped() && step_down(*view, next, target))
      if (next.estimate.time > most_time) break;
    if (limits_.stopped() || next.estimate.peak >= state.estimate.peak ||
        next.estimate.time > most_time)
      break;
    state = std::move(next);
    if (state.estimate.peak > enough && state.estimate.peak > kWorthWaiting * waits) continue;
    waits = state.estimate.peak;
    add(state.fission, state.actions,
        estimate(*view, state.actions, target, Evaluator::Hash::computed));
  }
  if (limits_.stopped()) return;
  const double target = std::max(enough, state.estimate.peak);
  shed(*view, state, target);
  const Estimate last = estimate(*view, state.actions, target, Evaluator::Hash::computed);
  add(state.fission, std::move(state.actions), last);
}

void Search::build(const State& state) {
  Known& known = known_[state.fission];
  const auto bytes = [](double peak) {
    return Bytes(static_cast<std::int64_t>(std::min(std::ceil(peak), 0x1p62)));
  };
  const bool copies = std::ranges::any_of(
      state.actions, [](const Action& action) { return action.kind == Action::Kind::fetch; });
  std::vector<Bytes> budgets{problem_.budget};
  if (least_memory_) {
    budgets = {bytes(state.estimate.peak * known.peak)};
    if (copies) budgets.push_back(bytes(1.05 * state.estimate.peak * known.peak));
  }
  std::optional<Key> best;
  Cost cost;
  for (const Bytes budget : budgets) {
    auto made = builder_->plan(*known.view, state.actions, budget, limits_);
    if (!made) break;
    ++made_;
    const Key key = key_of(as_double(made->cost.peak), as_double(made->cost.duration));
    if (context_.offer(std::move(made->plan))) least_ = made->least;
    if (!best || key < *best) {
      best = key;
      cost = made->cost;
    }
    // A state that adds no time needs no second budget.
    if (least_memory_ && as_double(made->cost.duration) <= limit_) break;
  }
  if (!best) {
    // The splits are refused together: no state of this fission is of use.
    if (!limits_.stopped()) known.peak = known.time = 1e6;
    return;
  }
  if (!built_ || *best < *built_) built_ = *best;
  if (state.estimate.peak > 0) known.peak = as_double(cost.peak) / state.estimate.peak;
  if (state.estimate.time > 0) known.time = as_double(cost.duration) / state.estimate.time;
}

}  // namespace lowtide::solve::magis

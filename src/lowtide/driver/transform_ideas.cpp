// Problem: select, among thousands of regions and numbers of parts, the few that are worth
// planning.
//
// Idea: the graph of a candidate is not built. Its memory profile in one order and its time are
// computed from the region, and the recomputation that the budget needs is estimated from that
// profile. The estimate is far from the overhead of a plan, so it is calibrated by the plan of the
// original graph. Its errors are similar for candidates of one kind, so the best candidate of every
// kind is tried.
//
// Loses: effects that one position of the order does not show, such as orders that another split
// would allow.
#include "lowtide/driver/transform_ideas.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lowtide/rewrite/priced_region.h"
#include "lowtide/rewrite/profile.h"
#include "lowtide/transforms/if_legal.h"

namespace lowtide::driver {

namespace {

constexpr std::size_t kTrials = 5;          // at each level
constexpr double kIdeasShare = 0.15;        // of the limits, for the estimates of each level
constexpr double kSubstitutesShare = 0.05;  // of the limits, for each set of substitutions
constexpr double kBlind = 20;  // estimates below this fraction of the overhead are useless

std::int64_t count(std::size_t ops) { return static_cast<std::int64_t>(ops); }

}  // namespace

Transforms with_hoist(const Question& question) {
  if (!question.problem.techniques.hoist) return {};
  const Prices& prices = question.prices;
  return cache_applied(question, rewrite::hoisted(question.problem.graph,
                                                  prices.device_or_default(), prices.table.get()))
      ->transforms;
}

std::shared_ptr<const Applied> with_substitutes(const Question& question, Limits& limits,
                                                const Transforms& given, rewrite::Taken taken) {
  const Problem& problem = question.problem;
  const Prices& prices = question.prices;
  auto from = apply_cached(question, given);
  if (!problem.techniques.substitute || limits.stopped()) return from;
  const double until = limits.used() + kSubstitutesShare;
  const auto stops = [&] {  // one more match, or one more graph
    limits.spend(1 + count(problem.graph.op_count()) / 2);
    return limits.stopped() || limits.used() > until;
  };
  return cache_applied(question,
                       rewrite::substituted(problem.graph, *from, prices.device_or_default(),
                                            prices.table.get(), taken, stops));
}

std::vector<Transforms> with_other_parts(const Question& question, const Transforms& transforms) {
  std::vector<Transforms> found;
  if (transforms.empty()) return found;
  const auto* last = std::get_if<Split>(&transforms.back());
  if (last == nullptr) return found;
  const Base base(question, {transforms.begin(), transforms.end() - 1});
  const Graph& graph = base.now().graph;
  rewrite::Candidate region;
  for (const OpId op : graph.order())
    if (std::ranges::find(last->ops, base.now().op_index[op]) != last->ops.end())
      region.ops.push_back(op);
  for (const auto& axis : last->axes)
    for (const TensorId tensor : AllIds<TensorId>(graph.tensor_count()))
      if (base.now().tensor_index[tensor] == axis.tensor) region.axes.push_back({tensor, axis.dim});
  for (const std::int64_t parts :
       {last->parts / 2, last->parts - 1, last->parts + 1, 2 * last->parts}) {
    if (parts < 2 || parts == last->parts || parts * count(region.ops.size()) > kMostMadeOps)
      continue;
    const auto priced = rewrite::PricedRegion::make(graph, region, parts, base.pricer);
    if (!priced) continue;
    found.push_back(base.transforms());
    found.back().emplace_back(priced->split(base.now()));
  }
  return found;
}

// Of all candidates, those with the smallest peak: with all possible recomputation, and in the
// given order.
struct TransformIdeas::Lowest {
  std::optional<Idea> left, peak;

  void take(const Idea& idea) {
    if (!left || idea.above_floor < left->above_floor) left = idea;
    if (!peak || idea.peak < peak->peak) peak = idea;
  }
};

void TransformIdeas::calibrate(Ticks planned) {
  constexpr double kUnknown = 3;  // if it has no plan
  const auto estimated = rewrite::shortfall(problem_.graph, rewrite::profile_of(problem_.graph),
                                            problem_.budget, problem_.machine);
  const auto lost = static_cast<double>((planned - problem_.graph.total_time()).count());
  const auto guessed = static_cast<double>(estimated.again.count());
  promising_ = planned == Ticks::max() || lost <= kBlind * guessed || estimated.missing > Bytes(0);
  factor_ = planned == Ticks::max() ? kUnknown : std::max(1.0, lost / std::max(guessed, 1.0));
}

Ticks TransformIdeas::estimated(Ticks time, Ticks again) const {
  const double most = std::min(factor_ * static_cast<double>(again.count()), 0x1p61);
  const Ticks more(static_cast<std::int64_t>(most));
  return time > Ticks::max() - more ? Ticks::max() : time + more;
}

std::shared_ptr<const Base> TransformIdeas::base_of(const Transforms& transforms) {
  auto base = std::make_shared<const Base>(question_, transforms);
  limits_.spend(count(base->now().graph.op_count()));
  return base;
}

std::vector<Idea> TransformIdeas::best(const std::vector<Transforms>& begun, Ticks to_beat) {
  to_beat_ = to_beat;
  std::vector<Idea> found;
  if (!problem_.techniques.split || !promising_) return found;
  Lowest lowest;
  const double until = limits_.used() + kIdeasShare;
  const auto enough = [&] { return limits_.stopped() || limits_.used() > until; };
  for (const Transforms& transforms : begun) {
    if (enough()) break;
    const auto base = base_of(transforms);
    const std::int64_t ops = count(base->now().graph.op_count());
    const auto shaped = [&] {  // one more candidate
      limits_.spend(ops / 4);
      return enough();
    };
    for (const rewrite::Candidate& candidate : rewrite::propose(base->now().graph, shaped)) {
      if (enough()) break;
      best_parts(base, candidate, found, lowest);
    }
  }
  std::vector<Idea> few = few_of(std::move(found));
  // If no candidate fits yet, the one with the smallest peak comes first.
  for (auto* one : {&lowest.left, &lowest.peak}) {
    if (!*one || limits_.stopped() || !complete(**one)) continue;
    std::erase_if(few, [&](const Idea& idea) { return idea.transforms == (*one)->transforms; });
    few.insert(few.begin(), std::move(**one));
  }
  return few;
}

// The best of each kind on each base first. At most as many from one base as from the others, since
// estimates for two bases cannot be compared.
std::vector<Idea> TransformIdeas::few_of(std::vector<Idea> all) {
  std::ranges::stable_sort(all, {}, &Idea::rank);
  std::vector<std::vector<Idea*>> by_base;
  for (Idea& idea : all) {
    auto of = std::ranges::find_if(
        by_base, [&](const auto& list) { return list.front()->base == idea.base; });
    if (of == by_base.end()) of = by_base.insert(of, std::vector<Idea*>{});
    of->push_back(&idea);
  }
  for (auto& list : by_base) {
    std::set<Idea::Kind> seen;
    std::ranges::stable_partition(
        list, [&](const Idea* idea) { return seen.insert(idea->kind()).second; });
  }
  std::vector<Idea> few;
  for (std::size_t turn = 0; few.size() < kTrials; ++turn) {
    bool more = false;
    for (const auto& list : by_base) {
      if (turn >= list.size() || few.size() == kTrials) continue;
      more = true;
      if (limits_.stopped()) return few;
      if (complete(*list[turn])) few.push_back(std::move(*list[turn]));
    }
    if (!more) break;
  }
  return few;
}

std::optional<Idea> TransformIdeas::estimate(const std::shared_ptr<const Base>& base,
                                             const rewrite::Candidate& region,
                                             std::int64_t parts) const {
  const Graph& graph = base->now().graph;
  const auto priced = rewrite::PricedRegion::make(graph, region, parts, base->pricer);
  if (!priced) return std::nullopt;
  const rewrite::Profile profile = priced->profile();
  const auto missing = [&](Bytes budget) {
    return rewrite::shortfall(graph, profile, budget, problem_.machine);
  };
  const auto short_of = missing(problem_.budget);
  return Idea{
      .base = base,
      .region = region,
      .parts = parts,
      .transforms = {},
      .missing = short_of.missing,
      .time = estimated(profile.time, short_of.again),
      .least = profile.time,
      .peak = profile.peak(),
      .above_floor = to_beat_ < Ticks::max() ? Bytes(0) : missing(always_live(problem_)).missing};
}

void TransformIdeas::best_parts(const std::shared_ptr<const Base>& base,
                                const rewrite::Candidate& region, std::vector<Idea>& found,
                                Lowest& lowest) {
  std::optional<Idea> best, fits;
  for (const std::int64_t parts : rewrite::parts_for(region.slices)) {
    const std::int64_t ops = count(region.ops.size());
    if (parts * ops > kMostMadeOps || limits_.stopped()) break;
    // A unit is about a microsecond.
    limits_.spend(1 + ops / 8 + count(base->now().graph.op_count()) / 16);
    auto idea = estimate(base, region, parts);
    // A candidate that costs more than the present overhead cannot win.
    if (!idea || idea->least >= to_beat_) continue;
    if (idea->peak <= problem_.budget && (!fits || idea->least < fits->least)) {
      fits = idea;
      fits->fits = true;
    }
    if (to_beat_ == Ticks::max()) lowest.take(*idea);
    if (!best || idea->rank() < best->rank()) best = std::move(idea);
  }
  if (fits && best && fits->parts == best->parts) best.reset();
  for (auto* one : {&best, &fits})
    if (*one) found.push_back(std::move(**one));
}

bool TransformIdeas::complete(Idea& idea) {
  const Base& base = *idea.base;
  limits_.spend(count(base.now().graph.op_count()) + count(idea.region.ops.size()) * idea.parts);
  const auto priced =
      rewrite::PricedRegion::make(base.now().graph, idea.region, idea.parts, base.pricer);
  if (!priced) return false;
  idea.transforms = base.transforms();
  idea.transforms.emplace_back(priced->split(base.now()));
  const auto applied = if_legal([&] { return apply_cached(question_, idea.transforms); });
  if (!applied) return false;
  idea.least = (*applied)->now.graph.least_time();
  return true;
}

}  // namespace lowtide::driver

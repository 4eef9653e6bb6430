// Each action stands before an op of the base graph. In the transformed graph it stands before
// each part of that op, and computes or fetches the same part. The order is the view's, one part
// after the other, with joins right after the parts that they join. If this is no topological
// order of the transformed graph, which a region can cause that makes something once for other ops
// too, the given order of the transformed graph is used.
#include "lowtide/solve/magis/build.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/graph/orders.h"
#include "lowtide/rewrite/priced_region.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/placement.h"
#include "lowtide/solve/sequence/sequence.h"
#include "lowtide/transforms/if_legal.h"

namespace lowtide::solve::magis {

namespace {

constexpr std::size_t kMostKept = 3;  // made graphs

bool is_join(const Op& op) { return op.kind == "lowtide.join" || op.kind == "lowtide.add"; }

// The first action of each op, by the op that it precedes.
std::span<const Action> actions_of(const Graph& graph, const Actions& actions, OpId op) {
  const auto position = [&](const Action& one) { return graph.position(one.before); };
  const auto found = std::ranges::equal_range(actions, graph.position(op), {}, position);
  return {found.begin(), found.end()};
}

}  // namespace

std::optional<Builder::MadeView> Builder::make(const View& view, Limits& limits) const {
  MadeView found;
  found.transforms = base_.transforms;
  found.graph = base_.graph;
  if (!view.regions.empty()) {
    std::int64_t ops = static_cast<std::int64_t>(base_.graph->op_count());
    for (const RegionOfView& region : view.regions)
      ops += (region.parts - 1) * static_cast<std::int64_t>(region.last + 1 - region.first);
    if (ops > rewrite::kMostMadeOps || limits.spend(ops)) return std::nullopt;
    for (const RegionOfView& region : view.regions) {
      if (!found.made) found.made = *base_.made;
      // Regions do not overlap, so a region's inputs exist when the regions before it are made.
      const TransformedGraph& now = *found.made;
      rewrite::Candidate candidate = tree_.nodes[region.node].region;
      for (OpId& op : candidate.ops) op = now.ops[base_.made->op_index[op].index()];
      for (auto& axis : candidate.axes) {
        axis.tensor = now.tensors[base_.made->tensor_index[axis.tensor].index()];
        if (!axis.tensor.valid()) return std::nullopt;
      }
      const PartPricer pricer(now.graph, device_, costs_);
      const auto priced = rewrite::PricedRegion::make(now.graph, candidate, region.parts, pricer);
      if (!priced) return std::nullopt;
      const Transform split = priced->split(now);
      Applied before{std::move(found.transforms), std::move(*found.made)};
      found.made = if_legal([&] { return apply_further(problem_.graph, before, {&split, 1}); });
      if (!found.made) return std::nullopt;
      found.transforms = std::move(before.transforms);
      found.transforms.push_back(split);
      if (limits.spend_all(static_cast<std::int64_t>(found.made->graph.op_count())))
        return std::nullopt;
    }
    found.graph = &found.made->graph;
  }
  if (!find_parts(view, found)) return std::nullopt;
  return found;
}

bool Builder::find_parts(const View& view, MadeView& found) const {
  const std::size_t ops = base_.graph->op_count();
  found.parts.resize(ops);
  found.joins.resize(ops);
  found.before.resize(view.regions.size());
  found.base.assign(found.graph->op_count(), OpId());
  found.part.assign(found.graph->op_count(), 0);
  if (!found.made) {
    for (const OpId op : AllIds<OpId>(ops)) {
      found.parts[op.index()] = {op};
      found.base[op.index()] = op;
    }
    return true;
  }
  const TransformedGraph& made = *found.made;
  // By region, its ops with the same source: nearly always one.
  std::vector<std::map<OpId, std::vector<OpId>>> by_source(view.regions.size());
  for (const OpId op : view.order) {
    const std::int32_t region = view.region[op.index()];
    if (region == View::kOutside) {
      const OpId same = made.ops[base_.made->op_index[op].index()];
      if (!same.valid()) return false;
      found.parts[op.index()] = {same};
      found.base[same.index()] = op;
    } else {
      by_source[static_cast<std::size_t>(region)][base_.made->source[op]].push_back(op);
    }
  }
  const auto first = static_cast<std::int32_t>(base_.transforms.size());
  std::map<std::pair<OpId, std::int32_t>, std::size_t> seen;  // of a source and part
  for (const OpId op : AllIds<OpId>(found.graph->op_count())) {
    if (made.parts[op].empty() || found.base[op.index()].valid()) continue;
    const PartOf of = made.parts[op].back();
    if (of.transform < first) continue;
    const auto region = static_cast<std::size_t>(of.transform - first);
    if (of.part == PartOf::kBefore) {
      found.before[region].push_back(op);
      continue;
    }
    const auto known = by_source[region].find(made.source[op]);
    if (known == by_source[region].end()) return false;
    const auto part = static_cast<std::size_t>(of.part);
    std::size_t& number = seen[{made.source[op], of.part}];
    if (is_join(found.graph->op(op)) && number > 0) {
      const OpId base = known->second[number - 1];
      auto& joins = found.joins[base.index()];
      joins.resize(std::max(joins.size(), part + 1));
      joins[part].push_back(op);
      continue;
    }
    if (number == known->second.size()) return false;
    const OpId base = known->second[number++];
    if (found.parts[base.index()].size() != part) return false;
    found.parts[base.index()].push_back(op);
    found.base[op.index()] = base;
    found.part[op.index()] = part;
  }
  return true;
}

const Builder::MadeView* Builder::made(const View& view, Limits& limits) {
  if (const auto at = made_.find(view.fission); at != made_.end()) return at->second.get();
  if (refused_.contains(view.fission)) return nullptr;
  auto found = make(view, limits);
  if (!found) {
    if (!limits.stopped()) refused_.insert(view.fission);
    return nullptr;
  }
  if (made_.size() >= kMostKept) made_.clear();
  auto& kept = made_[view.fission];
  // The graph moves with its owner.
  auto owned = std::make_unique<MadeView>(std::move(*found));
  if (owned->made) owned->graph = &owned->made->graph;
  kept = std::move(owned);
  return kept.get();
}

TensorId Builder::tensor(const View& view, const MadeView& on, Slot slot, std::size_t part) const {
  const TensorId id = view.tensor[slot];
  if (view.home[slot] == View::kOutside)
    return on.made ? on.made->tensors[base_.made->tensor_index[id].index()] : id;
  const OpId maker = base_.graph->producer(id);
  std::size_t place = 0;
  for (const TensorId made : base_.graph->outputs(maker)) {
    if (made == id) break;
    if (view.home[made.index()] == view.home[slot]) ++place;
  }
  return on.graph->outputs(on.parts[maker.index()][part])[place];
}

// Appends the op's part, after the actions that precede it.
void Builder::add(const View& view, const MadeView& on, const Actions& actions, OpId op,
                  std::size_t part, std::vector<Event>& events) const {
  for (const Action& action : actions_of(*base_.graph, actions, op)) {
    if (action.kind == Action::Kind::fetch) {
      events.push_back(Event::fetch(tensor(view, on, action.index, part)));
      continue;
    }
    const auto& parts = on.parts[action.index];
    if (part < parts.size()) events.push_back(Event::compute(parts[part]));
  }
  const auto& parts = on.parts[op.index()];
  if (part < parts.size()) events.push_back(Event::compute(parts[part]));
}

std::vector<Event> Builder::in_order_of_view(const View& view, const MadeView& on,
                                             const Actions& actions) const {
  std::vector<Event> events;
  for (std::size_t place = 0; place < view.order.size(); ++place) {
    const OpId op = view.order[place];
    const std::int32_t index = view.region[op.index()];
    if (index == View::kOutside) {
      add(view, on, actions, op, 0, events);
      continue;
    }
    const RegionOfView& region = view.regions[static_cast<std::size_t>(index)];
    if (place != region.first) continue;
    for (const OpId once : on.before[static_cast<std::size_t>(index)])
      events.push_back(Event::compute(once));
    for (std::size_t part = 0; part < static_cast<std::size_t>(region.parts); ++part)
      for (std::size_t at = region.first; at <= region.last; ++at) {
        const OpId inner = view.order[at];
        add(view, on, actions, inner, part, events);
        if (part < on.joins[inner.index()].size())
          for (const OpId join : on.joins[inner.index()][part])
            events.push_back(Event::compute(join));
      }
  }
  return events;
}

std::vector<Event> Builder::events(const View& view, const MadeView& on,
                                   const Actions& actions) const {
  if (problem_.order == Order::free) {
    std::vector<Event> events = in_order_of_view(view, on, actions);
    if (is_topological(*on.graph, first_computations(*on.graph, computations(events))))
      return events;
  }
  std::vector<Event> events;
  for (const OpId op : on.graph->order()) {
    if (const OpId base = on.base[op.index()]; base.valid())
      add(view, on, actions, base, on.part[op.index()], events);
    else
      events.push_back(Event::compute(op));
  }
  return events;
}

std::optional<BuiltPlan> Builder::plan(const View& view, const Actions& actions, Bytes budget,
                                       Limits& limits) {
  const MadeView* on = made(view, limits);
  if (on == nullptr) return std::nullopt;
  // Transforms make ops that can run in place, even if the graph has none.
  std::optional<Graph> apart;
  if (!problem_.techniques.in_place && on->graph->has_overwrites())
    apart = Graph(*on->graph).without_in_place();
  const Graph& graph = apart ? *apart : *on->graph;
  const TransformedGraph* renumbered = on->made ? &*on->made : base_.made ? &*base_.made : nullptr;
  Problem problem = with_graph(problem_, graph);
  problem.budget = budget;
  problem.time_limit.reset();
  problem.objective = Objective::least_time;
  std::vector<Event> sequence = without_unread(problem, events(view, *on, actions));
  if (limits.spend_all(static_cast<std::int64_t>(sequence.size()))) return std::nullopt;
  if (transfers(sequence)) {
    if (!too_long(problem).empty()) return std::nullopt;
    auto placed = place(problem, sequence, limits);
    if (!placed) return std::nullopt;
    sequence = std::move(placed->events);
  }
  Plan plan = plan_from_events(graph, sequence, problem.machine);
  const Timeline timeline = simulate(graph, plan);
#if LOWTIDE_DEBUG_CHECKS
  check(!timeline.violation, "what a state of magis says can be run");
#endif
  if (timeline.violation) return std::nullopt;
  if (renumbered) plan = on_original(*renumbered, on->transforms, plan);
  return BuiltPlan{std::move(plan), timeline.cost, graph.total_time()};
}

}  // namespace lowtide::solve::magis

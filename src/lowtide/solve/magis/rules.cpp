// The paper's two rules are tried on tensors live at the peak with users on both sides of it. The
// dual rules undo any of their actions.
//
// A recomputed value needs its inputs. The paper keeps them until then, and recomputes them in a
// later step if that pays. On a chain of equal sizes such a step gains nothing by itself. So here
// freed inputs are recomputed at once, and the paper's way is an additional rule.
#include "lowtide/solve/magis/rules.h"

#include <algorithm>

namespace lowtide::solve::magis {

namespace {

constexpr std::size_t kLongestChain = 48, kMostLooked = 4 * kLongestChain;  // ops

}  // namespace

std::vector<HotSpot> Rules::hot_spots(const View& view, const Evaluator& state,
                                      std::size_t fullest) const {
  const auto instances = state.instances();
  const auto events = state.events();
  std::vector<std::size_t> next(instances.size(), SIZE_MAX);
  std::vector<std::uint8_t> is_touched(instances.size(), 0);
  for (std::size_t event = events.size(); event-- > fullest;)
    for (const std::int32_t read : state.read_at(event)) {
      next[static_cast<std::size_t>(read)] = event;
      if (event == fullest) is_touched[static_cast<std::size_t>(read)] = 1;
    }
  std::vector<HotSpot> found;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const Instance& one = instances[i];
    if (one.maker == Instance::kNone || one.first >= fullest || one.last <= fullest ||
        is_touched[i] != 0 || next[i] == SIZE_MAX || view.bytes[one.slot] == 0)
      continue;
    if (events[next[i]].kind == StateEvent::Kind::close) continue;
    found.push_back(
        {static_cast<std::int32_t>(i), next[i], static_cast<double>(view.bytes[one.slot])});
  }
  std::ranges::stable_sort(found, std::greater{}, &HotSpot::bytes);
  return found;
}

bool Rules::may_run_again(const View& view, OpId op, OpId before) const {
  return settings_.recompute && graph_.recomputable(op) &&
         view.region[op.index()] == view.region[before.index()] &&
         view.place[op.index()] < view.place[before.index()] &&
         view.place[before.index()] <= view.deadline[op.index()];
}

// Appends the op, after those of its inputs that are not live at the event. Every op is examined
// once, so that the work is small however many paths there are.
bool Rules::gather(const View& view, const Evaluator& state, OpId op, const StateEvent& at,
                   std::size_t event, Gathered& found) const {
  found.looked.push_back(op);
  if (!may_run_again(view, op, at.at) || found.depth >= kLongestChain) return false;
  const auto instances = state.instances();
  for (const Slot slot : view.reads[op.index()]) {
    std::int32_t there = state.latest(slot);
    while (there != Instance::kNone && instances[static_cast<std::size_t>(there)].first >= event &&
           instances[static_cast<std::size_t>(there)].maker != Instance::kNone)
      there = instances[static_cast<std::size_t>(there)].before;
    if (there == Instance::kNone) return false;
    const Instance& one = instances[static_cast<std::size_t>(there)];
    if (!found.chain || one.last >= event || one.maker == Instance::kNone) continue;
    const OpId maker = graph_.producer(view.tensor[slot]);
    if (slot >= graph_.tensor_count() || !maker.valid()) continue;
    if (found.looked.size() >= kMostLooked ||
        std::ranges::find(found.looked, maker) != found.looked.end())
      continue;
    // An input that cannot be recomputed is held.
    const std::size_t before = found.ops.size();
    ++found.depth;
    if (!gather(view, state, maker, at, event, found)) found.ops.resize(before);
    --found.depth;
  }
  found.ops.push_back(op);
  return found.ops.size() <= kLongestChain;
}

// Inserts before the event among the actions of its op.
Actions Rules::with(const Actions& actions, const StateEvent& at,
                    std::span<const Action> added) const {
  std::size_t place = at.action;
  if (at.kind == StateEvent::Kind::compute) {
    const std::size_t position = graph_.position(at.at);
    place = static_cast<std::size_t>(
        std::ranges::partition_point(
            actions, [&](const Action& one) { return graph_.position(one.before) <= position; }) -
        actions.begin());
  }
  Actions found(actions.begin(), actions.begin() + static_cast<std::ptrdiff_t>(place));
  found.insert(found.end(), added.begin(), added.end());
  found.insert(found.end(), actions.begin() + static_cast<std::ptrdiff_t>(place), actions.end());
  return found;
}

std::optional<Rules::Change> Rules::recomputed(const View& view, const Evaluator& state,
                                               const Actions& actions, const HotSpot& spot,
                                               bool chain) const {
  const Instance& one = state.instances()[static_cast<std::size_t>(spot.instance)];
  if (one.slot >= graph_.tensor_count()) return std::nullopt;
  const StateEvent& at = state.events()[spot.next];
  const OpId maker = graph_.producer(view.tensor[one.slot]);
  Gathered gathered{.chain = chain};
  const bool can = gather(view, state, maker, at, spot.next, gathered);
  limits_.spend(static_cast<std::int64_t>(1 + gathered.looked.size() / 8 + actions.size() / 32));
  if (!can) return std::nullopt;
  Change change;
  std::vector<Action> added;
  const auto known = groups(actions);
  const std::uint32_t group = known.empty() ? 0 : known.back() + 1;
  for (const OpId op : gathered.ops) {
    added.push_back(
        {at.at, Action::Kind::recompute, static_cast<std::uint32_t>(op.index()), group});
    change.time += static_cast<double>(view.time[op.index()]);
  }
  change.actions = with(actions, at, added);
  return change;
}

std::optional<Rules::Change> Rules::fetched(const View& view, const Evaluator& state,
                                            const Actions& actions, const HotSpot& spot) const {
  if (!settings_.offload || view.out.empty()) return std::nullopt;
  const Instance& one = state.instances()[static_cast<std::size_t>(spot.instance)];
  const StateEvent& at = state.events()[spot.next];
  if (view.home[one.slot] != view.region[at.at.index()]) return std::nullopt;
  // A copy from before an op that changes the tensor is stale.
  for (const OpId reader : graph_.consumers(view.tensor[one.slot]))
    if (!graph_.mutates(reader).empty() &&
        std::ranges::find(graph_.mutates(reader), view.tensor[one.slot]) !=
            graph_.mutates(reader).end())
      return std::nullopt;
  const auto known = groups(actions);
  const Action added[] = {
      {at.at, Action::Kind::fetch, one.slot, known.empty() ? 0 : known.back() + 1}};
  Change change{with(actions, at, added), 0};
  const double takes = static_cast<double>(std::max(view.out[one.slot], view.in[one.slot]));
  change.time = std::max(0.0, takes - std::max(0.0, state.idle()));
  return change;
}

Actions Rules::without(const Actions& actions, std::uint32_t group) {
  Actions found = actions;
  std::erase_if(found, [&](const Action& one) { return one.group == group; });
  return found;
}

std::vector<std::uint32_t> Rules::groups(const Actions& actions) {
  std::vector<std::uint32_t> found;
  for (const Action& one : actions) found.push_back(one.group);
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

Actions Rules::allowed(const View& view, const Actions& actions) const {
  Actions found;
  for (const Action& one : actions) {
    const bool may =
        one.kind == Action::Kind::recompute
            ? may_run_again(view, OpId(std::size_t{one.index}), one.before)
            : one.index < graph_.tensor_count() &&
                  view.home[one.index] == view.region[one.before.index()] &&
                  view.place[graph_.producer(TensorId(std::size_t{one.index})).index()] <
                      view.place[one.before.index()];
    if (may) found.push_back(one);
  }
  return found;
}

}  // namespace lowtide::solve::magis

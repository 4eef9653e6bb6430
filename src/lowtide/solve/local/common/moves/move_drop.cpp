// Problem: a step exceeds the budget. Which of the tensors that are live but unused there should
// be recomputed?
//
// Idea: sample a few, and take the one with most relief per cost: its own recomputation, plus, for
// each of its inputs, the cheaper of holding it until then and recomputing it. The recomputation
// stands before the next use, or at the last use of an input.
//
// A proposal is rejected if its estimated cost exceeds the relief by more than the temperature
// allows.
#include <algorithm>
#include <array>
#include <limits>

#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local {

Moves::Gap Moves::gap_at(Item item, Value value, Slot slot) const {
  Gap gap;
  const Item end = state.end(item, value);
  const auto [last, next] = state.uses_around(value, slot, state.slot(item), state.slot(end));
  gap.value = value;
  gap.last = last == kNone ? item : last;
  gap.next = next == kNone ? end : next;
  if (next == kNone && network.is_hold(state.node(end))) return gap;
  if (state.slot(gap.next) - state.slot(gap.last) >= 2) gap.item = item;
  return gap;
}

double Moves::gap_relief(const Gap& gap, Slot until) const {
  const Node node = network.maker(gap.value);
  double relief =
      state.profile().relief(state.slot(gap.last) + 1, until - 1, network.bytes_of(gap.value));
  // The item now also makes the other outputs of the op.
  if (network.output_count(node) > 1)
    for (Value value : network.outputs(node)) {
      if (value == gap.value) continue;
      const Item server = network.transfers ? state.server(value, until) : gap.item;
      if (state.end_slot(server, value) <= until) continue;
      const Item use = state.last_use(value, state.slot(server), until);
      const Slot from = state.slot(use == kNone ? server : use) + 1;
      relief += state.profile().relief(from, until - 1, network.bytes_of(value));
    }
  return relief;
}

double Moves::inputs_estimate(const Gap& gap, Slot here, double limit, bool fetches) const {
  if (price <= 0) return 0;  // holding them costs nothing
  double estimate = 0;
  const Slot freed_from = state.slot(gap.last) + 1;
  const double freed = network.bytes_of(gap.value);
  for (Value value : network.inputs(network.maker(gap.value))) {
    const Item server = state.server(value, here);
    const Slot end = state.end_slot(server, value);
    if (end >= here - 1) continue;
    const Node maker = network.maker(value);
    const double bytes = network.bytes_of(value);
    double again = network.may_repeat(maker) ? network.time_of(maker) : Profile::kNever;
    if (network.transfers && switches.swap && fetches)
      again = std::min(again, kFetchShare * network.copy_in[value]);
    // Values above either need not be exact.
    const double enough = std::min(again, limit - estimate + 1) / price;
    // An input that is held instead of the tensor takes the bytes that the tensor leaves.
    const Slot middle = std::max(end + 1, std::min(freed_from, here));
    double harm = state.profile().harm(end + 1, middle - 1, bytes, enough);
    harm += state.profile().harm_once_freed(middle, here - 1, bytes, freed, enough - harm);
    const double cost = std::min(again, price * harm);
    estimate += cost;
    if (estimate > limit) break;
  }
  return estimate;
}

template <bool kSwap>
Moves::Gap Moves::draw_gap(Slot slot) {
  static constexpr std::array<int, 8> kCandidates = {1, 2, 4, 8, 8, 12, 16, 24};
  const int wanted = kCandidates[random.below(kCandidates.size())];
  const auto waiting = state.spanning(slot);
  if (waiting.empty()) return {};
  Gap best;
  double best_ratio = -1;
  int found = 0;
  for (int tries = 4 * wanted; found < wanted && tries > 0; --tries) {
    const Value value = waiting[random.below(waiting.size())];
    const Node node = network.maker(value);
    if (network.bytes_of(value) < network.small && random.below(kSmallEvery) != 0) continue;
    if (state.slot(State::first_of(node)) >= slot) continue;
    if (kSwap ? !may_leave(value) : network.transfers && !network.may_repeat(node)) continue;
    const Item item = state.server(value, slot);
    if (state.end_slot(item, value) <= slot) continue;
    ++found;
    const Gap gap = gap_at(item, value, slot);
    if (gap.item == kNone) continue;
    if (wanted == 1) return gap;
    double relief = 0, cost = 0;
    if constexpr (kSwap) {
      relief = price * plain_relief(gap);
      cost = cost_of_swap(gap);
    } else {
      const Slot until = state.slot(gap.next);
      relief = price * gap_relief(gap, until);
      const double own = network.time_of(node) + 1e-3 * typical_time;
      // Inputs only increase the cost.
      const double most = best_ratio > 0 ? relief / best_ratio - own : Profile::kNever;
      if (most <= 0) continue;
      cost = own + inputs_estimate(gap, until, most);
    }
    const double ratio = relief / cost;
    if (ratio <= best_ratio) continue;
    best_ratio = ratio;
    best = gap;
  }
  return best;
}

template Moves::Gap Moves::draw_gap<true>(Slot slot);

// The item before which it is inserted: mostly the next use.
Item Moves::place_in_gap(const Gap& gap, Slot slot) {
  const auto draw = random.below(10);
  const auto inputs = network.inputs(network.maker(gap.value));
  const Slot until = state.slot(gap.next);
  if (draw < 3 && !inputs.empty()) {
    const Value value = inputs[random.below(inputs.size())];
    const Slot end = state.end_slot(state.server(value, until), value);
    if (end > slot && end < until) return state.item_after(end);
  } else if (draw == 3) {
    const auto span = static_cast<std::size_t>(std::max<Distance>(1, until - slot));
    return state.item_from(std::min(slot + 1 + static_cast<Distance>(random.below(span)), until));
  }
  return gap.next;
}

bool Moves::worth_trying(const Gap& gap, Item before, double& limit) {
  const Node node = network.maker(gap.value);
  const double time = network.time_of(node);
  const Slot here = state.slot(before);
  // Another recomputation of the op may become superfluous.
  const bool repeated = !state.is_first(gap.item) || state.last_of(node) != gap.item ||
                        (network.transfers && state.is_fetched(gap.value));
  if (!switches.estimates) {
    limit = std::numeric_limits<double>::infinity();
    return true;
  }
  limit =
      price * gap_relief(gap, here) + 6 * temperature * random.uniform() + (repeated ? time : 0);
  return time <= limit && time + inputs_estimate(gap, here, limit - time) <= limit;
}

bool Moves::drop_gap(Slot slot) {
  const Gap gap = draw_gap<false>(slot);
  if (gap.item == kNone) return false;
  const Node node = network.maker(gap.value);
  const Item before = place_in_gap(gap, slot);
  if (!may_stand_before(node, before)) return false;
  double limit = 0;
  if (!worth_trying(gap, before, limit)) return false;
  static constexpr std::array<Allowance, 3> kSizes = {{{8, 0, 2}, {30, 0, 6}, {300, 0, 60}}};
  const auto draw = random.below(8);
  Allowance allowance = kSizes[draw < 4 ? 0 : draw < 7 ? 1 : 2];
  allowance.duration = state.compute_time() + limit;
  repeat(node, before, allowance, allowance.depth);
  return true;
}

Moves::Gap Moves::gap_before(Value value, Item use) const {
  if (!state.present(use)) return {};
  const Slot slot = state.slot(use) - 1;
  if (slot <= state.slot(State::first_of(network.maker(value)))) return {};
  const Item item = state.server(value, state.slot(use));
  if (state.end_slot(item, value) <= slot) return {};
  return gap_at(item, value, slot);
}

Moves::Prices Moves::least_prices(Value value, Item use, double link_price) const {
  const Gap gap = gap_before(value, use);
  if (gap.item == kNone) return {Profile::kNever, Profile::kNever};
  const Node node = network.maker(value);
  const double relief = network.may_repeat(node) ? gap_relief(gap, state.slot(gap.next)) : 0;
  return {relief > 0 ? network.time_of(node) / relief : Profile::kNever,
          price_of_swap(gap, link_price)};
}

Moves::Prices Moves::prices_of_gap(Value value, Item use, double link_price) const {
  const Gap gap = gap_before(value, use);
  if (gap.item == kNone) return {Profile::kNever, Profile::kNever};
  const Node node = network.maker(value);
  const Slot here = state.slot(gap.next);
  Prices prices{Profile::kNever, price_of_swap(gap, link_price)};
  if (!network.may_repeat(node) || !may_stand_before(node, gap.next)) return prices;
  const double relief = gap_relief(gap, here), time = network.time_of(node);
  // Costs above that of a swap need not be exact.
  const double most =
      prices.swap < Profile::kNever ? std::max(0.0, prices.swap * relief - time) : Profile::kNever;
  if (relief > 0) prices.again = (time + inputs_estimate(gap, here, most)) / relief;
  return prices;
}

void Moves::drop_before(Value value, Item use) {
  const Gap gap = gap_before(value, use);
  if (gap.item == kNone) return;
  Allowance allowance{30, Profile::kNever, 6};
  repeat(network.maker(value), gap.next, allowance, allowance.depth);
}

bool Moves::relieve(Slot slot) {
  if (!network.transfers) return drop_gap(slot);
  const bool swap = switches.swap && (!switches.recompute || random.chance(kSwapShare));
  if (swap) return swap_gap(slot);
  return switches.recompute && drop_gap(slot);
}

}  // namespace lowtide::solve::local

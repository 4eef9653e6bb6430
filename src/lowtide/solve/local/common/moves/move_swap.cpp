// Problem: a tensor may be swapped over a retention gap. Where is it fetched, and how long is it
// held until its copy to the host has ended?
//
// Idea: the copy back is issued just in time: as late as the idle time of its lane allows, by the
// last pricing of the lanes. If the copy to the host ends after the tensor's last use before the
// gap, the tensor is held until then, since an earlier free would stall the compute lane. A new
// copy delays later copies on its lane. So their tensors are held longer too, and fetches that are
// in the way are issued earlier, all as one move.
//
// These times are estimates; the move is priced exactly before it is accepted.
#include <algorithm>

#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local {

namespace {

constexpr int kMostCopies = 80;  // copies moved along with one

}  // namespace

bool Moves::may_leave(Value value) const {
  return network.is_away(value) || state.is_fetched(value) ||
         state.host_bytes() + network.bytes_of(value) <= network.host_budget;
}

double Moves::plain_relief(const Gap& gap) const {
  return state.profile().relief(state.slot(gap.last) + 1, state.slot(gap.next) - 1,
                                network.bytes_of(gap.value));
}

double Moves::cost_of_swap(const Gap& gap) const {
  double cost = network.copy_in[gap.value];
  if (!state.is_fetched(gap.value)) cost += network.copy_out[gap.value];
  const double gap_time =
      state.begin_time(state.slot(gap.next)) - state.begin_time(state.slot(gap.last));
  return gap_time < cost ? 3 * cost : cost;
}

double Moves::price_of_swap(const Gap& gap, double link_price) const {
  if (link_price == Profile::kNever || !may_leave(gap.value)) return Profile::kNever;
  const double relief = plain_relief(gap);
  return relief > 0 ? link_price * cost_of_swap(gap) / relief : Profile::kNever;
}

void Moves::swap_before(Value value, Item use) {
  const Gap gap = gap_before(value, use);
  if (gap.item != kNone && may_leave(value)) swap_in(gap, {});
}

bool Moves::swap_gap(Slot slot) {
  const Gap gap = draw_gap<true>(slot);
  if (gap.item == kNone) return false;
  if (switches.estimates && price * plain_relief(gap) + 6 * temperature * random.uniform() <
                                kLinkWeight * network.copy_in[gap.value])
    return false;
  swap_in(gap, slot);
  return state.changed();
}

// Walks back over the idle time of the lane.
double Moves::just_in_time(double copy, double needed) const {
  const auto& queue = state.lanes().in();
  auto behind = std::lower_bound(
      queue.begin(), queue.end(), needed,
      [](const Lanes::Transfer& transfer, double time) { return transfer.begin < time; });
  double at = needed, rest = copy;
  for (; behind != queue.begin() && at > 0; --behind) {
    const Lanes::Transfer& before = *std::prev(behind);
    const double idle = at - std::min(at, before.end);
    if (idle >= rest) break;
    rest -= idle;
    at = std::min(at, before.begin);
  }
  return std::max(0.0, at - rest);
}

bool Moves::has_copy(Value value, bool changed) const {
  if (!changed && network.is_away(value)) return true;
  for (Item fetch = state.last_of(network.fetch(value)); fetch != kNone;
       fetch = state.previous(fetch))
    if (state.is_changed(value, state.slot(fetch)) == changed) return true;
  return changed && network.is_away(value);
}

void Moves::swap_in(const Gap& gap, Slot slot) {
  const Value value = gap.value;
  const Slot low = state.slot(gap.last), high = state.slot(gap.next);
  const double copy = network.copy_in[value];
  const auto draw = random.below(100);
  Slot at = high;
  if (draw < 75) {
    double begin = just_in_time(copy, state.begin_time(high));
    if (draw < 25) begin = std::max(0.0, begin - copy * random.uniform());
    at = state.slot_at(begin);
    if (state.begin_time(at) > begin && at > low) at = at - 1;
  } else if (draw >= 85) {
    at = draw < 92 && slot.valid()
             ? slot + 1
             : low + 1 + static_cast<Distance>(random.below(static_cast<std::size_t>(high - low)));
  }
  if (slot.valid() && at <= slot && random.below(8) != 0) at = slot + 1;
  const Item before = state.item_from(std::clamp(at, low + 1, high));
  const bool changed = state.is_changed(value, low + 1);
  const bool had = has_copy(value, changed);
  const Item fetch = state.insert(network.fetch(value), before);
  drop_unread_before(fetch);
  drop_superfluous_after(fetch);
  if (!had) begin_copy(value, changed, slot);
  if (random.chance(0.5) && state.present(fetch))
    push_fetches(fetch, 1 + static_cast<int>(random.below(kMostCopies)));
}

Slot Moves::issued_at(std::int32_t copy) const {
  const auto [value, changed] = state.copied(copy);
  return state.slot(State::first_of(changed ? network.changer(value) : network.maker(value)));
}

double Moves::made_at(Value value, bool changed) const {
  const Node node = changed ? network.changer(value) : network.maker(value);
  return state.begin_time(state.slot(State::first_of(node))) + network.time_of(node);
}

double Moves::freed_at(Value value, bool changed) const {
  const Item last = state.end(state.copied_item(value, changed), value);
  return state.begin_time(state.slot(last)) + network.time_of(state.node(last));
}

// A new copy to the host.
void Moves::begin_copy(Value value, bool changed, Slot slot) {
  const auto& queue = state.lanes().out();
  const std::int32_t clock = state.copy_clock(value, changed);
  const auto behind = std::lower_bound(
      queue.begin(), queue.end(), issued_at(clock),
      [&](const Lanes::Transfer& other, Slot at) { return issued_at(other.clock) < at; });
  double begin = made_at(value, changed);
  if (behind != queue.begin()) begin = std::max(begin, std::prev(behind)->end);
  const double end = begin + network.copy_out[value];
  state.guess_copy(value, changed, end);
  if (freed_at(value, changed) < end &&
      (!slot.valid() || state.slot_at(end) <= slot || random.below(3) == 0))
    hold_until_copied(value, changed);
  if (random.chance(0.5))
    push_holds(value, changed, 1 + static_cast<int>(random.below(kMostCopies)));
}

void Moves::remove_holds(Value value, bool changed) {
  Item hold = state.last_of(network.hold(value));
  while (hold != kNone) {
    const Item earlier = state.previous(hold);
    if (state.is_changed(value, state.slot(hold)) == changed) state.remove(hold);
    hold = earlier;
  }
}

// By the latest pricing of the lanes.
bool Moves::hold_until_copied(Value value, bool changed) {
  if (!switches.holds) return false;
  const Item held = state.copied_item(value, changed);
  const Item next = state.next_maker(value, state.slot(held));
  const Slot limit = state.slot(next == kNone ? State::first_of(network.sink()) : next);
  if (next == kNone && state.end(held, value) == State::first_of(network.sink())) return false;
  const double end = state.lanes().end_of(state.copy_clock(value, changed));
  Item last = held;
  const auto users = network.users(value);
  for (const Node user : users)
    for (Item item = state.last_of(user); item != kNone; item = state.previous(item)) {
      if (state.slot(item) >= limit) continue;
      if (state.slot(item) > state.slot(last)) last = item;
      break;
    }
  const Item hold = state.first_hold(value, state.slot(held), limit);
  if (state.begin_time(state.slot(last)) + network.time_of(state.node(last)) >= end) {
    if (hold == kNone) return false;
    state.remove(hold);
    return true;
  }
  const Item before = state.item_from(std::min(state.slot_at(end), limit));
  if (before == kNone || state.slot(before) > limit || state.slot(before) <= state.slot(last))
    return false;
  if (hold != kNone) return move_to(hold, state.slot(before));
  if (before == state.item_after(state.slot(last))) return false;
  state.insert(network.hold(value), before);
  return true;
}

// From this copy on, the tensors whose copy ends after their free are held longer.
void Moves::push_holds(Value value, bool changed, int most) {
  if (!switches.queues) return;
  state.settle();
  const auto& queue = state.lanes().out();
  const std::int32_t clock = state.copy_clock(value, changed);
  auto at = std::ranges::find(queue, clock, &Lanes::Transfer::clock);
  for (auto before = at; at != queue.end() && most > 0; before = at++, --most) {
    const auto [other, of_change] = state.copied(at->clock);
    if (freed_at(other, of_change) < at->end)
      hold_until_copied(other, of_change);
    else if (before != at && at->begin > before->end)
      return;  // the rest does not wait for these
  }
}

double Moves::time_needed(Item fetch) const {
  const Value value = network.value_of(state.node(fetch));
  const Item last = state.end(fetch, value);
  const Item user = state.first_use(value, state.slot(fetch), state.slot(last) + 1);
  return state.begin_time(state.slot(user == kNone ? last : user));
}

bool Moves::move_to(Item item, Slot slot) {
  if (!slot.valid()) return false;
  const auto [low, high] = span_of(item);
  if (high - low < 2) return false;
  const Item before = state.item_from(std::clamp(slot, low + 1, high));
  if (before == item || before == state.item_after(state.slot(item))) return false;
  state.move(item, before);
  return true;
}

// Before this fetch, fetches that would end too late are issued earlier.
void Moves::push_fetches(Item fetch, int most) {
  if (!switches.queues) most = 1;
  state.settle();
  const auto& queue = state.lanes().in();
  const auto found = std::ranges::find(queue, state.arrival_clock(fetch), &Lanes::Transfer::clock);
  if (found == queue.end()) return;
  double end = time_needed(fetch);
  for (auto at = std::make_reverse_iterator(std::next(found)); at != queue.rend() && most > 0;
       ++at, --most) {
    const Item item = state.fetched_by(at->clock);
    end = std::min(end, time_needed(item));
    if (item != fetch && at->end <= end) return;
    const double begin = end - network.copy_in[network.value_of(state.node(item))];
    if (at->begin > begin) {
      Slot slot = state.slot_at(std::max(0.0, begin));
      if (state.begin_time(slot) > begin) do
          slot = slot - 1;
        while (slot > Slot(0) && state.item_at(slot) == kNone);
      if (slot < state.slot(item)) move_to(item, slot);
    }
    end = begin;
  }
}

bool Moves::shift_transfer(Item item) {
  const Node node = state.node(item);
  const Value value = network.value_of(node);
  const bool changed = state.is_changed(value, state.slot(item));
  const auto [low, high] = span_of(item);
  if (high - low < 3) return false;
  const auto draw = random.below(8);
  const Slot here = state.slot(item);
  if (network.is_hold(node)) {
    if (draw < 3) return hold_until_copied(value, changed);
    if (draw == 3) {
      state.remove(item);
      return true;
    }
  } else {
    if (draw < 2) {
      push_fetches(item, 1 + static_cast<int>(random.below(kMostCopies)));
      return state.changed();
    }
    if (draw == 2) {
      const double begin = time_needed(item) - network.copy_in[value] * (1 + random.uniform());
      return move_to(item, state.slot_at(std::max(0.0, begin)));
    }
    if (draw == 3 && !(network.is_away(value) && !changed) &&
        state.last_of(network.hold(value)) == kNone)
      return hold_until_copied(value, changed);
    if (draw == 6) return move_to(item, high);
  }
  if (draw < 6) {
    const auto distance = 1 + static_cast<Distance>(random.below(16));
    return move_to(item, random.chance(0.5) ? here + distance : here - distance);
  }
  return move_to(
      item, low + 1 + static_cast<Distance>(random.below(static_cast<std::size_t>(high - low))));
}

bool Moves::fetch_instead(Value value, Item server, Item use, Item reader, bool repeats) {
  if (!switches.swap || !may_leave(value)) return false;
  const double again = repeats ? network.time_of(network.maker(value)) : Profile::kNever;
  const double copy = kFetchShare * network.copy_in[value] * (state.is_fetched(value) ? 1 : 1.5);
  if (repeats && !random.chance(copy < again ? 0.6 : 0.15)) return false;
  const Gap gap{
      .item = server, .value = value, .last = use == kNone ? server : use, .next = reader};
  if (price * plain_relief(gap) <= (0.3 + 1.4 * random.uniform()) * copy) return false;
  swap_in(gap, {});
  return true;
}

}  // namespace lowtide::solve::local

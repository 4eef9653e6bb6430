// Problem: the link is full. A tensor with an expensive recomputation could be swapped instead, if
// another swapped tensor were not. Each half alone is rejected: the additional copies delay all
// others, and the additional recomputation only costs time.
//
// Idea: do both at once. The taker, which is swapped, is the recomputation of a small sample with
// the longest time relative to the copy of its output. The givers are swapped tensors that are
// cheapest to recompute, or to hold, relative to their copies. Givers are added until the taker's
// copy fits.
//
// Loses: a tensor that is swapped several times gives nothing, since its copy to the host stays.
#include <algorithm>
#include <array>

#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local {

namespace {

constexpr std::array<int, 4> kTakers = {1, 4, 8, 16}, kGivers = {2, 8, 16, 32};  // samples
constexpr std::size_t kMostGivers = 6;
// The lane to the host may have idle time. So in this share of the draws a smaller space on it
// suffices; and this share of the draws that found too little space continue all the same.
constexpr double kLessRoom = 0.25, kNoRoom = 0.25;
constexpr int kMostInsertions = 30;  // for recomputing one of them

}  // namespace

Value Moves::largest_read(Item item) const {
  Value largest;
  for (const Value value : network.outputs(state.node(item)))
    if (state.end(item, value) != item &&
        (!largest.valid() || network.bytes_of(value) > network.bytes_of(largest)))
      largest = value;
  return largest;
}

Item Moves::reader_of(Item item, Value value) const {
  return state.first_use(value, state.slot(item), state.end_slot(item, value) + 1);
}

Item Moves::draw_taker() {
  Item best = kNone;
  double best_ratio = -1;
  for (int tries = kTakers[random.below(kTakers.size())]; tries > 0; --tries) {
    const Item item = any_later();
    if (item == kNone) return kNone;
    const Node node = state.node(item);
    if (!network.is_op(node)) continue;
    const Value value = largest_read(item);
    if (!value.valid() || network.bytes_of(value) < network.small || !may_leave(value)) continue;
    if (network.copy_out[value] <= 0) continue;
    const double ratio = network.time_of(node) / network.copy_out[value];
    if (ratio <= best_ratio) continue;
    best_ratio = ratio;
    best = item;
  }
  return best;
}

Moves::Giver Moves::draw_giver(Value taker, double limit) {
  Giver best;
  double best_ratio = Profile::kNever;
  for (int tries = kGivers[random.below(kGivers.size())]; tries > 0; --tries) {
    const Item fetch = any_later();
    const Node node = state.node(fetch);
    if (!network.is_fetch(node)) continue;
    const Value value = network.value_of(node);
    if (value == taker || network.is_away(value)) continue;
    if (state.last_of(node) != fetch || state.previous(fetch) != kNone) continue;
    const Item use = reader_of(fetch, value);
    if (use == kNone) continue;
    const double copy = network.copy_out[value];
    if (copy <= 0) continue;
    const double most = std::min(limit, best_ratio * copy);
    const Node maker = network.maker(value);
    const double time = network.time_of(maker);
    double cost = most;
    if (network.may_repeat(maker) && time < most && may_stand_before(maker, use)) {
      const Item before = state.previous_maker(fetch, value);
      const Gap gap{.item = before, .value = value, .last = state.end(before, value), .next = use};
      cost = time + inputs_estimate(gap, state.slot(use), most - time, false);
    }
    const double holding = price > 0 ? price * holding_instead(fetch, cost / price) : 0;
    if (std::min(holding, cost) >= most) continue;
    best = {.fetch = fetch, .node = node, .cost = std::min(holding, cost), .held = holding < cost};
    best_ratio = best.cost / copy;
  }
  return best;
}

void Moves::give_way(const Giver& giver, double left) {
  // An earlier giver may have removed it.
  if (!state.present(giver.fetch) || state.node(giver.fetch) != giver.node) return;
  const Value value = network.value_of(giver.node);
  const Item use = reader_of(giver.fetch, value);
  remove_chain(giver.fetch);
  const Node maker = network.maker(value);
  if (giver.held || use == kNone || !may_stand_before(maker, use)) return;
  Allowance allowance{.insertions = kMostInsertions,
                      .duration = state.compute_time() + giver.cost + left,
                      .depth = kMostInsertions,
                      .fetches = false};
  repeat(maker, use, allowance, allowance.depth);
}

bool Moves::hand_over() {
  if (!switches.may_hand_over()) return false;
  const Item taker = draw_taker();
  if (taker == kNone) return false;
  const Node node = state.node(taker);
  const Value value = largest_read(taker);
  double left = network.time_of(node) + 6 * temperature * random.uniform();
  for (const Value input : network.inputs(node)) {
    const Item server = state.server(input, state.slot(taker));
    if (!state.is_first(server) && state.end(server, input) == taker)
      left += network.time_of(network.maker(input));
  }
  const bool changed = state.is_changed(value, state.slot(taker));
  double room = has_copy(value, changed) ? 0 : network.copy_out[value];
  if (random.chance(kLessRoom)) room *= random.uniform();
  std::array<Giver, kMostGivers> givers;
  std::size_t count = 0;
  for (std::size_t tries = 2 * kMostGivers; room > 0 && count < kMostGivers && tries > 0; --tries) {
    const Giver giver = draw_giver(value, left);
    if (giver.fetch == kNone) break;
    const auto known = givers.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::find(givers.begin(), known, giver) != known) continue;
    givers[count++] = giver;
    left -= giver.cost;
    room -= network.copy_out[network.value_of(giver.node)];
  }
  if (room > 0 && !random.chance(kNoRoom)) return false;

  for (std::size_t i = 0; i < count; ++i) give_way(givers[i], left);
  if (!state.present(taker) || state.node(taker) != node) return state.changed();
  const Item use = reader_of(taker, value);
  remove_chain(taker);
  if (use == kNone) return true;
  if (const Gap gap = gap_before(value, use); gap.item != kNone) swap_in(gap, {});
  return state.changed();
}

}  // namespace lowtide::solve::local

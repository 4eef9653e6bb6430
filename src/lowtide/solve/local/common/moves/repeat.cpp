// Compound changes: insert a computation with the chain of inputs that it needs, or remove one
// with the chain that only it needed.
#include <algorithm>

#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local {

Moves::Moves(const Network& graph, State& changing, Random& numbers)
    : network(graph),
      state(changing),
      random(numbers),
      typical_time(std::max(
          1.0, graph.total_time / static_cast<double>(std::max<std::size_t>(1, graph.ops)))) {}

Item Moves::any_repeat() {
  Item item = any_later();
  if (!network.transfers) return item;
  for (int tries = 40; item != kNone && network.is_hold(state.node(item)); item = any_later())
    if (--tries == 0) return kNone;
  return item;
}

Item Moves::any_later() {
  if (state.repeat_count() == 0) return kNone;
  return state.repeat(random.below(state.repeat_count()));
}

Slot Moves::any_overload() {
  if (state.profile().over() <= 0) return {};
  return state.profile().find_over(Slot(random.below(state.slot_count())));
}

bool Moves::may_stand_before(Node node, Item before) const {
  for (Node end : network.ends(node))
    if (state.slot(before) > state.slot(State::first_of(end))) return false;
  return true;
}

void Moves::repeat(Node node, Item before, Allowance& allowance, int depth) {
  if (allowance.insertions <= 0 || !network.may_repeat(node) || !may_stand_before(node, before))
    return;
  --allowance.insertions;
  const Item item = state.insert(node, before);
  drop_unread_before(item);

  const auto inputs = network.inputs(node);
  if (!switches.chains) depth = 0;
  for (std::size_t i = inputs.size(); depth > 0 && i > 0; --i) {
    const Value value = inputs[i - 1];
    const Node maker = network.maker(value);
    const bool repeats = network.may_repeat(maker);
    if (!repeats && !network.transfers) continue;
    if (!state.present(item)) return;
    const Slot here = state.slot(item);
    const Item server = state.server(value, here);
    if (state.end(server, value) != item) continue;
    const Item use = state.last_use(value, state.slot(server), here);
    const Slot from = state.slot(use == kNone ? server : use) + 1;
    if (here - from < 2) continue;
    if (network.transfers && allowance.fetches && fetch_instead(value, server, use, item, repeats))
      continue;
    if (!repeats) continue;
    const double wanted = (0.3 + 1.4 * random.uniform()) * network.time_of(maker) / price;
    if (state.profile().relief(from, here - 1, network.bytes_of(value), wanted + 1) <= wanted)
      continue;
    if (state.compute_time() + network.time_of(maker) > allowance.duration) {
      allowance.insertions = 0;
      break;
    }
    repeat(maker, item, allowance, depth - 1);
  }

  if (state.present(item)) drop_superfluous_after(item);
}

void Moves::drop_unread_before(Item item) {
  for (Value value : network.outputs(state.node(item))) {
    const Item earlier = state.previous_maker(item, value);
    if (!state.is_first(earlier) && state.unused(earlier)) remove_chain(earlier);
    if (!network.transfers) return;  // all outputs have the same
    // A hold is for the copy of what was made before.
    const Item last = state.end(item, value);
    if (last != item && network.is_hold(state.node(last))) state.remove(last);
  }
}

// Perhaps the next computation of the op has become cheaper to replace by holding this one's.
void Moves::drop_superfluous_after(Item item) {
  Item seen = kNone;
  for (Value value : network.outputs(state.node(item))) {
    const Item later = state.next_maker_after(item, value);
    if (later != kNone && later != seen && (seen = later, may_remove(later))) {
      const Node node = state.node(later);
      const double won =
          network.is_fetch(node) ? kFetchShare * network.copy_in[value] : network.time_of(node);
      const double limit = (0.5 + random.uniform()) * won / price;
      if (holding_instead(later, limit) < limit) remove_chain(later);
    }
    if (!network.transfers) return;
  }
}

void Moves::remove_chain(Item item) {
  doomed_.assign(1, item);
  while (!doomed_.empty()) {
    const Item next = doomed_.back();
    doomed_.pop_back();
    if (next != item && (!state.present(next) || !state.unused(next))) continue;
    // What served it and nobody later may now be unused too.
    const Slot here = state.slot(next);
    for (Value value : network.inputs(state.node(next))) {
      const Item server = state.server(value, here);
      if (!state.is_first(server) && state.end(server, value) == next) doomed_.push_back(server);
    }
    const Node node = state.node(next);
    const bool changed =
        network.is_fetch(node) && state.is_changed(network.value_of(node), state.slot(next));
    state.remove(next);
    if (network.is_fetch(node) && !has_copy(network.value_of(node), changed))
      remove_holds(network.value_of(node), changed);
  }
}

}  // namespace lowtide::solve::local

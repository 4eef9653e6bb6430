// A computation may stand anywhere between its last producer and its first reader. Its place
// decides lifetimes. With a free order first computations shift too, which searches the order.
#include <algorithm>

#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local {

Moves::Span Moves::span_of(Item item) const {
  const Node node = state.node(item);
  const Slot here = state.slot(item);
  const auto first = [&](Node other) { return state.slot(State::first_of(other)); };
  Slot low(0), high = first(network.sink());
  const auto raise = [&](Slot slot) { low = std::max(low, slot); };
  const auto lower = [&](Slot slot) { high = std::min(high, slot); };
  const auto lower_to = [&](Item other) {
    if (other != kNone) lower(state.slot(other));
  };
  for (Value value : network.inputs(node)) {
    raise(first(network.maker(value)));
    if (!network.transfers) continue;
    if (network.is_away(value)) raise(state.slot(state.next_maker(value, Slot(0))));
    if (!network.is_hold(node)) continue;
    raise(state.slot(state.server(value, here)));
    lower_to(state.next_maker(value, here));
  }
  if (state.is_first(item)) {
    const OpId self = Network::op_of(node);
    for (OpId op : network.graph.predecessors(self)) raise(first(Network::node_of(op)));
    for (OpId op : network.graph.successors(self)) lower(first(Network::node_of(op)));
    for (Node ended : network.ended(node)) raise(state.slot(state.last_of(ended)));
  } else {
    for (Value value : network.outputs(node)) {
      const Item earlier = state.previous_maker(item, value);
      raise(state.slot(earlier));
      raise(state.end_slot(earlier, value));
    }
  }
  // Items of a node stay in the order of their chain; fetches and computations are separated by the
  // producers of their values.
  if (!network.transfers || network.is_hold(node)) lower_to(state.next(item));
  if (network.is_hold(node)) {
    if (state.previous(item) != kNone) raise(state.slot(state.previous(item)));
  } else {
    for (Node end : network.ends(node)) lower(first(end));
  }
  for (Value value : network.outputs(node)) {
    if (network.transfers) lower_to(state.next_maker(value, here));
    const Slot end = state.end_slot(item, value);
    if (end == here) continue;
    lower_to(state.first_use(value, here, end + 1));
    lower_to(state.first_hold(value, here, end + 1));
  }
  return {low, high};
}

bool Moves::shift(Item item) {
  const Node node = state.node(item);
  if (!network.is_op(node) || !switches.shift) return false;
  const Slot here = state.slot(item);
  const auto [low, high] = span_of(item);
  if (high - low < 3) return false;

  const auto below = [&](Distance bound) {
    return static_cast<Distance>(
        random.below(static_cast<std::size_t>(std::max<Distance>(1, bound))));
  };
  const auto either_way = [&](Distance distance) {
    return random.chance(0.5) ? here + distance : here - distance;
  };
  Slot target;
  switch (random.below(4)) {
    case 0: target = low + 1 + below(high - low); break;
    case 1: target = either_way(1 + below(16)); break;
    case 2: {
      // As late as possible, or right after the last use of an input.
      target = high;
      const auto inputs = network.inputs(node);
      if (inputs.empty() || random.chance(0.5)) break;
      const Value value = inputs[random.below(inputs.size())];
      const Item server = state.server(value, here);
      Item last = state.end(server, value);
      if (last == item) last = state.last_use(value, state.slot(server), here);
      target = state.slot(last == kNone ? server : last) + 1;
      break;
    }
    default: target = either_way(1 + below((high - low) / 4)); break;
  }
  target = std::clamp(target, low + 1, high);
  const Item before = state.item_from(target);
  if (before == item || before == state.item_after(here)) return false;
  state.move(item, before);
  return true;
}

}  // namespace lowtide::solve::local

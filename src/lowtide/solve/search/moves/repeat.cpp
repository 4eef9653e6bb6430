// Compound changes: a computation with the chain of inputs that it wants, or without the chain that
// only it wanted.
#include <algorithm>

#include "lowtide/solve/search/moves/moves.h"

namespace lowtide::solve::search {

Moves::Moves(const Network& graph, State& changing, Random& numbers)
    : network(graph),
      state(changing),
      random(numbers),
      typical_time(std::max(
          1.0, graph.total_time / static_cast<double>(std::max<std::size_t>(1, graph.ops)))) {}

Item Moves::any_repeat() {
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
  const Item earlier = state.previous(item);
  if (!state.is_first(earlier) && state.unused(earlier)) remove_chain(earlier);
  const double time = network.time_of(node);

  const auto inputs = network.inputs(node);
  if (!switches.chains) depth = 0;
  for (std::size_t i = inputs.size(); depth > 0 && i > 0; --i) {
    const Value value = inputs[i - 1];
    const Node maker = network.maker(value);
    if (!network.may_repeat(maker)) continue;
    const Slot here = state.slot(item);
    const Item server = state.server(value, here);
    if (state.end(server, network.output_index(value)) != item) continue;
    const Item use = state.last_use(value, state.slot(server), here);
    const Slot from = state.slot(use == kNone ? server : use) + 1;
    if (here - from < 2) continue;
    const double wanted = (0.3 + 1.4 * random.uniform()) * network.time_of(maker) / price;
    if (state.profile().relief(from, here - 1, network.bytes_of(value), wanted + 1) <= wanted)
      continue;
    if (state.duration() + network.time_of(maker) > allowance.duration) {
      allowance.insertions = 0;
      break;
    }
    repeat(maker, item, allowance, depth - 1);
  }

  // Perhaps the next computation of the op has become cheaper to replace by holding this one's.
  const Item later = state.next(item);
  if (later == kNone) return;
  const double limit = (0.5 + random.uniform()) * time / price;
  double harm = 0;
  for (int k = 0; k < network.output_count(node) && harm < limit; ++k)
    if (state.end(later, k) != later)
      harm += state.profile().harm(state.end_slot(item, k) + 1, state.slot(later) - 1,
                                   network.bytes_of(network.output(node, k)), limit - harm);
  if (harm < limit) remove_chain(later);
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
      if (!state.is_first(server) && state.end(server, network.output_index(value)) == next)
        doomed_.push_back(server);
    }
    state.remove(next);
  }
}

}  // namespace lowtide::solve::search

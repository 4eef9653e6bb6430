// The inverse of dropping a gap: removes a recomputation, with the chain that only it needed, and
// holds its tensors from the computation before. Rejected early if holding them costs more than
// the removal can gain.
#include <algorithm>

#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local {

bool Moves::may_remove(Item item) const {
  if (!network.transfers) return true;
  const Node node = state.node(item);
  if (!network.is_fetch(node)) return !network.is_hold(node) || switches.swap;
  if (!switches.swap) return false;
  // The source does not make tensors at home on the host.
  const Value value = network.value_of(node);
  return !network.is_away(value) || state.unused(item) ||
         !state.is_first(state.previous_maker(item, value));
}

double Moves::holding_instead(Item item, double limit) const {
  double harm = 0;
  for (Value value : network.outputs(state.node(item))) {
    if (harm > limit) break;
    if (state.end(item, value) == item) continue;
    const Item earlier = state.previous_maker(item, value);
    harm += state.profile().harm(state.end_slot(earlier, value) + 1, state.slot(item) - 1,
                                 network.bytes_of(value), limit - harm);
  }
  return harm;
}

double Moves::even_price(Item item) const {
  const double harm = holding_instead(item, Profile::kNever);
  return harm > 0 ? network.time_of(state.node(item)) / harm : 0;
}

bool Moves::hopeless_removal(Item item) const {
  const Node node = state.node(item);
  double gain = network.time_of(node) + 10 * temperature + price * state.profile().over();
  for (Value value : network.inputs(node)) {
    const Item server = state.server(value, state.slot(item));
    if (!state.is_first(server) && state.end(server, value) == item)
      gain += 2 * network.time_of(network.maker(value));
  }
  if (network.is_fetch(node)) {
    const double copy = network.copy_in[network.value_of(node)];
    gain += std::min(state.duration() - state.compute_time(), 2 * copy) + kLinkWeight * copy;
  }
  return price * holding_instead(item, (gain + 1) / price) > gain;
}

bool Moves::remove_repeat() {
  const Item item = any_repeat();
  if (!switches.remove || item == kNone || !may_remove(item)) return false;
  if (switches.estimates && hopeless_removal(item)) return false;
  remove_chain(item);
  return true;
}

}  // namespace lowtide::solve::local

// The opposite of dropping a gap: a computation goes, with the chain that only it needed, and its
// tensors are held from the computation before. Refused if holding them costs more than the whole
// could win.
#include "lowtide/solve/search/moves/moves.h"

namespace lowtide::solve::search {

bool Moves::hopeless_removal(Item item) const {
  const Node node = state.node(item);
  const Item earlier = state.previous(item);
  double gain = network.time_of(node) + 10 * temperature + price * state.profile().over();
  for (Value value : network.inputs(node)) {
    const Item server = state.server(value, state.slot(item));
    if (!state.is_first(server) && state.end(server, network.output_index(value)) == item)
      gain += 2 * network.time_of(network.maker(value));
  }
  double harm = 0;
  for (int k = 0; k < network.output_count(node) && harm <= gain; ++k)
    if (state.end(item, k) != item)
      harm += price * state.profile().harm(state.end_slot(earlier, k) + 1, state.slot(item) - 1,
                                           network.bytes_of(network.output(node, k)),
                                           (gain - harm + 1) / price);
  return harm > gain;
}

bool Moves::remove_repeat() {
  const Item item = any_repeat();
  if (!switches.remove || item == kNone) return false;
  if (switches.estimates && hopeless_removal(item)) return false;
  remove_chain(item);
  return true;
}

}  // namespace lowtide::solve::search

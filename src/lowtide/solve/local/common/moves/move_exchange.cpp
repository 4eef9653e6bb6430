// Removes a recomputation and evicts another gap in one move. Each half alone would be rejected:
// near a plan that just keeps the budget, every removal exceeds it, and every recomputation only
// costs time.
#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local {

bool Moves::exchange(bool at_overload) {
  if (!switches.exchange) return remove_repeat();
  const Item item = any_repeat();
  if (item == kNone || !may_remove(item)) return false;
  const Slot here = state.slot(item);
  remove_chain(item);
  if (at_overload) {
    for (int drops = 1 + static_cast<int>(random.below(2)); drops > 0; --drops) {
      const Slot slot = any_overload();
      if (slot.valid()) relieve(slot);
    }
  } else {
    const Slot slot =
        random.chance(0.5) ? any_overload() : here - 1 - static_cast<Distance>(random.below(64));
    if (state.has(slot)) relieve(slot);
  }
  return true;
}

}  // namespace lowtide::solve::local

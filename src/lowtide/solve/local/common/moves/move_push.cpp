// A computation often cannot move because of its producers or readers, which could move as well.
// Push moves them along, up to a few computations. Each moves within its own span, the last first,
// so that their order stays.
#include <algorithm>

#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local {

namespace {

constexpr std::size_t kMostPushed = 8;
constexpr std::size_t kFarthest = 7;  // slots beyond the span: up to two to this power

}  // namespace

bool Moves::may_move(Item item) const {
  return !state.is_first(item) || (shift_first && network.is_op(state.node(item)));
}

bool Moves::push_right(Item item, Item before, int& allowance) {
  if (!may_move(item) || --allowance < 0) return false;
  for (;;) {
    const Slot high = span_of(item).high;
    if (state.slot(before) <= high) break;
    const Item blocker = state.item_at(high);
    if (!push_right(blocker, before, allowance)) return false;
    before = blocker;
  }
  state.move(item, before);
  return true;
}

bool Moves::push_left(Item item, Item before, int& allowance) {
  if (!may_move(item) || --allowance < 0) return false;
  for (;;) {
    const Slot low = span_of(item).low;
    if (low < state.slot(before)) break;
    const Item blocker = state.item_at(low);
    if (blocker == before || !push_left(blocker, before, allowance)) return false;
  }
  state.move(item, before);
  return true;
}

bool Moves::push(Item item) {
  if (!switches.push || !may_move(item)) return false;
  const auto [low, high] = span_of(item);
  const auto distance =
      1 + static_cast<Distance>(random.below(std::size_t{1} << random.below(kFarthest + 1)));
  int allowance = 2 + static_cast<int>(random.below(kMostPushed - 1));
  const bool right = random.chance(0.5);
  const Slot target = right ? high + distance : low - distance;
  if (target <= Slot(0) || target >= state.slot(State::first_of(network.sink()))) return false;
  const Item before = state.item_from(target);
  if (right ? push_right(item, before, allowance) : push_left(item, before, allowance)) return true;
  state.undo();
  return false;
}

}  // namespace lowtide::solve::local

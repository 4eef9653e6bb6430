// The positions of the items of a State: finds holes, makes holes, and redistributes items.
#include <algorithm>
#include <cmath>

#include "lowtide/base/error.h"
#include "lowtide/solve/local/common/state/state.h"

namespace lowtide::solve::local {

namespace {

// The distance within which a hole is searched before all items are redistributed. Half of the
// slots are holes right after that.
constexpr Distance kReach = 600;

}  // namespace

void State::place(std::span<const Item> items, std::span<const double> live) {
  const std::size_t wanted = std::max(occupant_.size(), 2 * items.size() + Profile::kBlock);
  const std::size_t slots = (wanted + Profile::kBlock - 1) / Profile::kBlock * Profile::kBlock;
  occupant_.assign(slots, kNone);
  std::vector<double> values(slots, -Profile::kHole);
  const double stride = static_cast<double>(slots - 1) / static_cast<double>(items.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto here = static_cast<std::size_t>(static_cast<double>(i) * stride);
    const double across = live[i] + in_place_[items[i]] - network_.own_bytes(node(items[i]));
    for (; next < here; ++next) values[next] = across - Profile::kHole;
    values[here] = live[i];
    occupant_[Slot(here)] = items[i];
    slot_[items[i]] = Slot(here);
    next = here + 1;
  }
  work_ += static_cast<std::int64_t>(slots / 8);
  profile_.assign(std::move(values));
  if (!network_.transfers) return;
  lanes_.reset(slots / Profile::kBlock);
  before_.assign(slots, 0);
}

void State::respace() {
  std::vector<Item> items;
  std::vector<double> live;
  items.reserve(count_);
  live.reserve(count_);
  for (const Slot slot : occupant_.ids())
    if (item_at(slot).valid()) {
      items.push_back(item_at(slot));
      live.push_back(profile_.at(slot));
    }
  place(items, live);
}

// Moves the items between a hole and its new position by one slot each. The hole is then before the
// item to its right.
void State::shift(Slot hole, Slot to) {
  const Distance step = to < hole ? -1 : 1;
  for (Slot slot = hole; slot != to; slot = slot + step) {
    occupant_[slot] = occupant_[slot + step];
    slot_[occupant_[slot]] = slot;
    profile_.set(slot, profile_.at(slot + step));
    touch(slot);
  }
  touch(to);
  occupant_[to] = kNone;
  const Item next = item_at(to + 1);
  const double across = profile_.at(to + 1) + in_place_[next] - network_.own_bytes(node(next));
  profile_.set(to, across - Profile::kHole);
  profile_.refresh(std::min(hole, to), std::max(hole, to));
  work_ += (std::max(hole, to) - std::min(hole, to)) / 8;
}

Slot State::make_room(Item before) {
  for (;;) {
    const Slot here = slot(before);
    const auto is_hole = [&](Slot slot) { return has(slot) && !item_at(slot).valid(); };
    if (is_hole(here - 1)) return here - 1;
    for (Distance distance = 1; distance <= kReach; ++distance) {
      if (is_hole(here + distance)) {
        shift(here + distance, here);
        return here;
      }
      if (is_hole(here - 1 - distance)) {
        shift(here - 1 - distance, here - 1);
        return here - 1;
      }
    }
    respace();
  }
}

// Except for slots, a fresh build of the same sequence must agree in everything.
void State::check_invariants() const {
  State fresh(network_);
  fresh.load(sequence());
  check(fresh.compute_time_ == compute_time_ && fresh.duration() == duration(),
        "search lost count of time");
  check(fresh.host_ == host_ && fresh.fetch_time_ == fetch_time_, "search lost count of copies");
  check(fresh.count_ == count_ && fresh.repeats_.size() == repeats_.size(),
        "search lost count of computations");
  Slot other;
  for (const Slot slot : occupant_.ids()) {
    const Item item = item_at(slot);
    if (!item.valid()) continue;
    const Item same = fresh.item_after(other);
    other = fresh.slot(same);
    check(node(item) == fresh.node(same), "search lost its sequence");
    const Item earlier = previous(item);
    check(earlier == kNone || (next(earlier) == item && this->slot(earlier) < slot),
          "search lost the order of the items of a node");
    check(profile_.at(slot) == fresh.profile_.at(other), "search lost count of bytes");
    for (Value value : network_.outputs(node(item)))
      check(node(end(item, value)) == fresh.node(fresh.end(same, value)),
            "search lost the end of a use");
  }
  const double error = std::abs(profile_.over() - fresh.profile_.over());
  check(error <= 1e-9 * (1 + profile_.over()), "search lost count of bytes over the budget");
  check(within() == fresh.within(), "search lost sight of its budget");
}

}  // namespace lowtide::solve::local

// The events of each tensor's copies on the lanes: the items that issue a copy, and the items that
// wait for one.
//
// As in plan_from_events, a tensor is copied to the host once, where it is first made, if it is
// fetched before a mutation; and once after the mutation, if it is fetched afterwards or at home
// there. The first item that frees it waits for the copy. The first reader of a fetched tensor
// waits for the fetch; without a reader, the item that frees it does.
#include <algorithm>

#include "lowtide/solve/local/common/state/state.h"

namespace lowtide::solve::local {

using Kind = Lanes::Kind;

void State::load_transfers() {
  const std::size_t values = network_.value_count();
  arrivals_ = values + network_.changed.size();
  lanes_.need_clocks(arrivals_);
  stops_.assign(values, {});
  at_item_.assign(node_.size(), -1);
  item_stops_.clear();
  spare_stop_ = -1;
  touched_.clear();
  is_touched_.assign(values, 0);
  host_ = network_.host_home;
  fetch_time_ = 0;
  for (const Value value : network_.bytes.ids()) {
    const Item last = last_of(network_.fetch(value));
    if (last != kNone && !network_.is_away(value)) host_ += network_.bytes_of(value);
    for (Item item = last; item != kNone; item = previous(item))
      fetch_time_ += network_.copy_in[value];
    touch(value);
  }
  settle();
  committed_duration_ = duration_;
}

void State::count_fetch(Node node, int by) {
  if (!network_.is_fetch(node)) return;
  const Value value = network_.value_of(node);
  fetch_time_ += by * network_.copy_in[value];
  // The chain of its fetches is up to date.
  const Item last = last_of(node);
  const bool only = by > 0 ? previous(last) == kNone : last == kNone;
  if (only && !network_.is_away(value)) host_ += by * network_.bytes_of(value);
}

void State::touch_overwritten(Item item) {
  for (const auto& pair : network_.overwrites(node(item))) touch(pair.input);
}

void State::list_stops(Value value) {
  new_stops_.clear();
  const Node changer = network_.changer(value);
  const Item sink = first_of(network_.sink());
  bool copies = false, copies_changed = changer.valid() && network_.is_away(value);
  for (Item fetch = last_of(network_.fetch(value)); fetch != kNone; fetch = previous(fetch)) {
    const Slot here = slot(fetch);
    (is_changed(value, here) ? copies_changed : copies) = true;
    const Item last = end(fetch, value);
    const Item user = last == fetch ? kNone : first_use(value, here, slot(last) + 1);
    if (user != kNone)
      new_stops_.push_back({user, Kind::wait_before, arrival_clock(fetch)});
    else
      new_stops_.push_back({last, Kind::wait_after, arrival_clock(fetch)});
  }
  const auto copy_at = [&](Item item, bool changed) {
    const std::int32_t clock = copy_clock(value, changed);
    new_stops_.push_back({item, Kind::copy, clock});
    const Item last = end(copied_item(value, changed), value);
    if (last == sink) return;
    new_stops_.push_back(
        {last, overwrites(last, value) ? Kind::wait_before : Kind::wait_after, clock});
  };
  if (copies && !network_.is_away(value)) copy_at(first_of(network_.maker(value)), false);
  if (copies_changed) copy_at(first_of(changer), true);
}

void State::refresh_stops(Value value) {
  list_stops(value);
  std::vector<Stop>& stops = stops_[value];
  if (stops == new_stops_) return;
  for (const Stop& stop : stops) {
    std::int32_t* link = &at_item_[stop.item];
    while (item_stops_[static_cast<std::size_t>(*link)].kind != stop.kind ||
           item_stops_[static_cast<std::size_t>(*link)].clock != stop.clock)
      link = &item_stops_[static_cast<std::size_t>(*link)].next;
    const std::int32_t gone = *link;
    *link = item_stops_[static_cast<std::size_t>(gone)].next;
    item_stops_[static_cast<std::size_t>(gone)].next = spare_stop_;
    spare_stop_ = gone;
    if (present(stop.item)) touch(slot(stop.item));
  }
  for (const Stop& stop : new_stops_) {
    std::int32_t place = spare_stop_;
    if (place < 0) {
      place = static_cast<std::int32_t>(item_stops_.size());
      item_stops_.emplace_back();
    } else {
      spare_stop_ = item_stops_[static_cast<std::size_t>(place)].next;
    }
    std::int32_t* link = &at_item_[stop.item];
    const auto stands_before = [&](const ItemStop& other) {
      return std::pair(other.kind, other.clock) < std::pair(stop.kind, stop.clock);
    };
    while (*link >= 0 && stands_before(item_stops_[static_cast<std::size_t>(*link)]))
      link = &item_stops_[static_cast<std::size_t>(*link)].next;
    item_stops_[static_cast<std::size_t>(place)] = {stop.kind, stop.clock, *link};
    *link = place;
    touch(slot(stop.item));
  }
  work_ += static_cast<std::int64_t>(stops.size() + new_stops_.size()) / 4;
  stops = new_stops_;
}

void State::fill_block(std::size_t block) {
  std::vector<Lanes::Stop>& stops = lanes_.refill(block);
  double x = 0;
  for (std::size_t i = block * Profile::kBlock; i < (block + 1) * Profile::kBlock; ++i) {
    const Slot here(i);
    before_[here] = x;
    const Item item = item_at(here);
    if (!item.valid()) continue;
    const Node node = this->node(item);
    const double begin = x, time = network_.time_of(node);
    x += time;
    std::int32_t at = at_item_[item];
    const auto stop = [&] { return item_stops_[static_cast<std::size_t>(at)]; };
    for (; at >= 0 && stop().kind == Kind::wait_before; at = stop().next)
      stops.push_back({begin, 0, stop().clock, Kind::wait_before});
    if (network_.is_fetch(node))
      stops.push_back(
          {begin, network_.copy_in[network_.value_of(node)], arrival_clock(item), Kind::fetch});
    if (network_.is_barrier(node)) stops.push_back({begin, time, 0, Kind::barrier});
    for (; at >= 0; at = stop().next) {
      const auto [kind, clock, next] = stop();
      const double copy = kind == Kind::copy ? network_.copy_out[copied(clock).first] : 0;
      stops.push_back({x, copy, clock, kind});
    }
  }
  lanes_.filled(block, x);
}

void State::settle() {
  if (!network_.transfers) return;
  for (const Value value : touched_) {
    is_touched_[value] = 0;
    refresh_stops(value);
  }
  touched_.clear();
  lanes_.need_clocks(arrivals_ + node_.size());
  const std::size_t blocks = slot_count() / Profile::kBlock;
  std::int64_t filled = 0;
  for (std::size_t block = lanes_.stale_from(0); block < blocks;
       block = lanes_.stale_from(block + 1), ++filled)
    fill_block(block);
  const std::int64_t before = lanes_.priced();
  duration_ = lanes_.evaluate();
  work_ += filled + (lanes_.priced() - before) / 16;
}

Slot State::slot_at(double time) const {
  const std::size_t block = lanes_.block_at(time);
  Slot slot(block * Profile::kBlock);
  const Slot last = slot + static_cast<Distance>(Profile::kBlock - 1);
  const double rest = time - lanes_.begin_of(block);
  while (slot < last && before_[slot] < rest) slot = slot + 1;
  return slot;
}

}  // namespace lowtide::solve::local

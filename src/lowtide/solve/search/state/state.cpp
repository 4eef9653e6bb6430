// Insertion and removal change the ends of at most two items for each tensor that they touch, and
// the bytes between those ends.
#include "lowtide/solve/search/state/state.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::solve::search {

State::State(const Network& network) : network_(network), profile_(network.budget) {}

void State::load(std::span<const OpId> sequence) {
  const std::size_t nodes = network_.node_count();
  node_.resize(nodes);
  slot_.assign(nodes, Slot());
  previous_.assign(nodes, kNone);
  next_.assign(nodes, kNone);
  ends_at_.resize(nodes);
  listed_.assign(nodes, -1);
  in_place_.assign(nodes, 0);
  stale_.clear();
  last_.assign(nodes, kNone);
  ends_.resize(network_.value_count());
  repeats_.clear();
  spare_.clear();
  log_.clear();
  duration_ = 0;

  std::vector<Item> items;
  items.reserve(sequence.size() + 2);
  for (const Node node : AllIds<Node>(nodes)) {
    node_[first_of(node)] = node;
    ends_at_[first_of(node)] = static_cast<std::int32_t>(network_.output(node, 0).index());
  }
  // While loading, slots are places in `items`.
  const auto enter = [&](Node node) {
    Item item = first_of(node);
    if (last_[node] != kNone) {
      item = new_item(node);
      previous_[item] = last_[node];
      next_[last_[node]] = item;
    }
    last_[node] = item;
    slot_[item] = Slot(items.size());
    items.push_back(item);
    duration_ += network_.time_of(node);
    for (Value value : network_.inputs(node)) {
      const Item server = last_[network_.maker(value)];
      check(server != kNone, "search: a sequence that reads what is not there");
      end_ref(server, network_.output_index(value)) = item;
    }
    for (int k = 0; k < network_.output_count(node); ++k) end_ref(item, k) = item;
  };
  enter(network_.source());
  for (OpId op : sequence) enter(Network::node_of(op));
  enter(network_.sink());
  count_ = items.size();

  std::vector<double> live(items.size() + 1, 0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Node node = node_[items[i]];
    const double workspace = network_.workspace[node];
    live[i] += workspace;
    live[i + 1] -= workspace;
    for (int k = 0; k < network_.output_count(node); ++k) {
      const double bytes = network_.bytes_of(network_.output(node, k));
      live[i] += bytes;
      live[end_slot(items[i], k).index() + 1] -= bytes;
    }
  }
  for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  for (std::size_t i = 0; i < items.size(); ++i)
    live[i] -= in_place_[items[i]] = overwritten(items[i]);
  occupant_.clear();
  place(items, live);
  index_spans();
}

void State::index_spans() {
  constexpr std::size_t kItems = 24, kMostParts = 64;
  const std::size_t parts = std::clamp<std::size_t>(count_ / kItems, 1, kMostParts);
  std::vector<std::vector<Value>> spans(parts);
  const auto part = [&](Slot slot) { return slot.index() * parts / occupant_.size(); };
  for (const Value value : network_.bytes.ids()) {
    const Node maker = network_.maker(value);
    if (!network_.may_repeat(maker) || network_.bytes_of(value) == 0) continue;
    const Slot begin = slot(first_of(maker)),
               end = end_slot(last_of(maker), network_.output_index(value));
    // Neighbours of three slots and less never wait for long.
    if (end - begin < 4) continue;
    for (std::size_t i = part(begin); i <= part(end); ++i) spans[i].push_back(value);
  }
  spans_ = {};
  for (const auto& values : spans) {
    for (Value value : values) spans_.push(value);
    spans_.end_row();
  }
  work_ += static_cast<std::int64_t>(spans_.size() / 16);
}

std::vector<OpId> State::sequence() const {
  std::vector<OpId> sequence;
  sequence.reserve(count_);
  for (Item item : occupant_)
    if (item.valid() && network_.is_op(node(item))) sequence.push_back(Network::op_of(node(item)));
  return sequence;
}

bool State::unused(Item item) const {
  for (int k = 0; k < network_.output_count(node(item)); ++k)
    if (end(item, k) != item) return false;
  return true;
}

double State::overwritten(Item item) const {
  double sum = 0;
  Value served;
  for (const auto& [input, output] : network_.overwrites(node(item))) {
    if (output == served) continue;
    const Item server = this->server(input, slot(item));
    if (end(server, network_.output_index(input)) != item) continue;
    sum += network_.bytes_of(output);
    served = output;
  }
  return sum;
}

void State::refresh_in_place(Item item) {
  if (network_.overwrites(node(item)).empty()) return;
  const double now = overwritten(item);
  profile_.add(slot(item), slot(item), in_place_[item] - now);
  in_place_[item] = now;
}

void State::refresh_noted() {
  for (const Item item : stale_)
    if (present(item)) refresh_in_place(item);
  stale_.clear();
}

Item State::item_after(Slot slot) const {
  const std::size_t count = slot_count();
  for (slot = slot + 1; slot.index() < count; slot = slot + 1)
    if (item_at(slot).valid()) return item_at(slot);
  return kNone;
}

std::pair<Item, Item> State::uses_around(Value value, Slot slot, Slot begin, Slot end) const {
  Item last = kNone, next = kNone;
  Slot last_slot = begin, next_slot = end;
  const auto users = network_.users(value);
  work_ += static_cast<std::int64_t>(users.size() / 8);
  for (Node user : users)
    for (Item item = last_of(user); item != kNone; item = previous(item)) {
      const Slot here = this->slot(item);
      if (here > slot) {
        if (here >= next_slot) continue;
        next = item;
        next_slot = here;
        continue;
      }
      if (here > last_slot) {
        last = item;
        last_slot = here;
      }
      break;
    }
  return {last, next};
}

std::vector<Item>& State::spare_of(Node node) {
  const auto outputs = static_cast<std::size_t>(network_.output_count(node));
  if (spare_.size() <= outputs) spare_.resize(outputs + 1);
  return spare_[outputs];
}

Item State::new_item(Node node) {
  const auto outputs = static_cast<std::size_t>(network_.output_count(node));
  std::vector<Item>& spare = spare_of(node);
  Item item;
  if (spare.empty()) {
    item = Item(node_.size());
    node_.push_back(node);
    slot_.push_back(Slot());
    previous_.push_back(kNone);
    next_.push_back(kNone);
    ends_at_.push_back(static_cast<std::int32_t>(ends_.size()));
    ends_.resize(ends_.size() + outputs);
    listed_.push_back(-1);
    in_place_.push_back(0);
  } else {
    item = spare.back();
    spare.pop_back();
  }
  node_[item] = node;
  previous_[item] = next_[item] = kNone;
  enlist(item);
  return item;
}

void State::enlist(Item item) {
  listed_[item] = static_cast<std::int32_t>(repeats_.size());
  repeats_.push_back(item);
}

void State::unlist(Item item) {
  const std::int32_t place = listed_[item];
  Item& freed = repeats_[static_cast<std::size_t>(place)];
  freed = repeats_.back();
  listed_[freed] = place;
  repeats_.pop_back();
  listed_[item] = -1;
}

void State::attach(Item item) {
  const Slot here = slot(item);
  for (Value value : network_.inputs(node(item))) {
    const Item server = latest(network_.maker(value), here);
    Item& last = end_ref(server, network_.output_index(value));
    if (slot(last) >= here) continue;
    note_in_place(last);
    profile_.add(slot(last) + 1, here, network_.bytes_of(value));
    last = item;
  }
}

void State::detach(Item item) {
  const Slot here = slot(item);
  for (Value value : network_.inputs(node(item))) {
    const Item server = latest(network_.maker(value), here);
    Item& last = end_ref(server, network_.output_index(value));
    if (last != item) continue;
    const Item use = last_use(value, slot(server), here);
    last = use == kNone ? server : use;
    note_in_place(last);
    profile_.add(slot(last) + 1, here, -network_.bytes_of(value));
  }
}

Item State::insert_item(Item item, Node node, Item before) {
  ++work_;
  const Slot here = make_room(before);
  node_[item] = node;
  slot_[item] = here;
  occupant_[here] = item;
  ++count_;
  duration_ += network_.time_of(node);

  // Into the chain of the op's items. The first computation comes before all others.
  Item after = kNone, earlier = last_of(node);
  while (slot(earlier) > here) {
    after = earlier;
    earlier = previous(earlier);
  }
  previous_[item] = earlier;
  next_[item] = after;
  next_[earlier] = item;
  (after == kNone ? last_[node] : previous_[after]) = item;

  double born = network_.workspace[node];
  for (int k = 0; k < network_.output_count(node); ++k) {
    const Value value = network_.output(node, k);
    Item& earlier_end = end_ref(earlier, k);
    if (slot(earlier_end) > here) {
      end_ref(item, k) = earlier_end;
      const Item use = last_use(value, slot(earlier), here);
      earlier_end = use == kNone ? earlier : use;
      note_in_place(earlier_end);
      profile_.add(slot(earlier_end) + 1, here - 1, -network_.bytes_of(value));
    } else {
      end_ref(item, k) = item;
      born += network_.bytes_of(value);
    }
  }
  profile_.fill(here, born);
  attach(item);
  note_in_place(item);
  refresh_noted();
  return item;
}

void State::remove_item(Item item) {
  ++work_;
  const Slot here = slot(item);
  const Node op = node(item);
  detach(item);
  const Item earlier = previous(item), after = next(item);
  double dying = network_.workspace[op] - std::exchange(in_place_[item], 0);
  for (int k = 0; k < network_.output_count(op); ++k) {
    const Value value = network_.output(op, k);
    if (end(item, k) == item) {
      dying += network_.bytes_of(value);
    } else {
      note_in_place(end(earlier, k));
      profile_.add(end_slot(earlier, k) + 1, here - 1, network_.bytes_of(value));
      end_ref(earlier, k) = end(item, k);
    }
  }
  profile_.vacate(here, dying);
  next_[earlier] = after;
  (after == kNone ? last_[op] : previous_[after]) = earlier;
  occupant_[here] = kNone;
  slot_[item] = Slot();
  --count_;
  duration_ -= network_.time_of(op);
  refresh_noted();
}

void State::move_item(Item item, Item before) {
  ++work_;
  const Node op = node(item);
  detach(item);
  const Slot to = make_room(before);
  const Slot from = slot(item);
  double own = network_.workspace[op];
  const double saved = std::exchange(in_place_[item], 0);
  double carried = 0;  // outputs that someone reads: live from the item on, wherever it stands
  for (int k = 0; k < network_.output_count(op); ++k) {
    const double bytes = network_.bytes_of(network_.output(op, k));
    (end(item, k) == item ? own : carried) += bytes;
  }
  occupant_[from] = kNone;
  occupant_[to] = item;
  slot_[item] = to;
  if (to < from) {
    profile_.fill(to, own + carried);
    profile_.add(to + 1, from - 1, carried);
    profile_.vacate(from, own - saved);
  } else {
    profile_.fill(to, own);
    profile_.add(from + 1, to - 1, -carried);
    profile_.vacate(from, own + carried - saved);
  }
  attach(item);
  note_in_place(item);
  refresh_noted();
}

Item State::insert(Node node, Item before) {
  const Item item = insert_item(new_item(node), node, before);
  log_.push_back({Change::insert, item, node, kNone});
  return item;
}

void State::remove(Item item) {
  log_.push_back({Change::remove, item, node(item), item_after(slot(item))});
  remove_item(item);
  unlist(item);
}

void State::move(Item item, Item before) {
  log_.push_back({Change::move, item, node(item), item_after(slot(item))});
  move_item(item, before);
}

void State::undo() {
  while (!log_.empty()) {
    const Entry entry = log_.back();
    log_.pop_back();
    switch (entry.change) {
      case Change::insert:
        remove_item(entry.item);
        unlist(entry.item);
        spare_of(entry.node).push_back(entry.item);
        break;
      case Change::remove:
        insert_item(entry.item, entry.node, entry.before);
        enlist(entry.item);
        break;
      case Change::move: move_item(entry.item, entry.before); break;
    }
  }
}

void State::commit() {
  for (const Entry& entry : log_)
    if (entry.change == Change::remove) spare_of(entry.node).push_back(entry.item);
  log_.clear();
}

}  // namespace lowtide::solve::search

// Insertion and removal change the ends of at most two items for each tensor that they touch, and
// the bytes between those ends.
#include "lowtide/solve/local/common/state/state.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::solve::local {

State::State(const Network& network) : Items(network), profile_(network.budget) {}

void State::load(std::span<const Event> sequence) {
  const std::size_t firsts = network_.first_count();
  node_.resize(firsts);
  slot_.assign(firsts, Slot());
  previous_.assign(firsts, kNone);
  next_.assign(firsts, kNone);
  ends_at_.assign(firsts, 0);
  listed_.assign(firsts, -1);
  in_place_.assign(firsts, 0);
  stale_.clear();
  last_.assign(network_.node_count(), kNone);
  ends_.resize(network_.value_count());
  repeats_.clear();
  spare_.clear();
  log_.clear();
  compute_time_ = 0;

  std::vector<Item> items;
  items.reserve(sequence.size() + 2);
  for (const Node node : AllIds<Node>(firsts)) node_[first_of(node)] = node;
  IdVector<Value, Item> current(network_.value_count(), kNone);
  // While loading, slots are indices into `items`.
  const auto enter = [&](Node node) {
    Item item = first_of(node);
    if (node.index() >= firsts || last_[node] != kNone) {
      item = new_item(node);
      previous_[item] = last_[node];
      if (last_[node] != kNone) next_[last_[node]] = item;
    }
    last_[node] = item;
    slot_[item] = Slot(items.size());
    items.push_back(item);
    compute_time_ += network_.time_of(node);
    for (Value value : network_.inputs(node)) {
      check(current[value] != kNone, "search: a sequence that reads what is not there");
      end_ref(current[value], value) = item;
    }
    for (Value value : network_.outputs(node)) {
      current[value] = item;
      end_ref(item, value) = item;
    }
  };
  enter(network_.source());
  if (network_.transfers)
    for (const Value value : network_.outputs(network_.source()))
      if (network_.is_away(value)) current[value] = kNone;
  for (const Event& event : sequence)
    enter(event.is_compute()                 ? Network::node_of(event.op())
          : event.kind == Event::Kind::fetch ? network_.fetch(network_.value_for(event.tensor()))
                                             : network_.hold(network_.value_for(event.tensor())));
  enter(network_.sink());
  count_ = items.size();

  std::vector<double> live(items.size() + 1, 0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Node node = node_[items[i]];
    const double workspace = network_.workspace[node];
    live[i] += workspace;
    live[i + 1] -= workspace;
    for (Value value : network_.outputs(node)) {
      if (i == 0 && network_.transfers && network_.is_away(value)) continue;
      const double bytes = network_.bytes_of(value);
      live[i] += bytes;
      live[end_slot(items[i], value).index() + 1] -= bytes;
    }
  }
  for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  for (std::size_t i = 0; i < items.size(); ++i)
    live[i] -= in_place_[items[i]] = overwritten(items[i]);
  occupant_.clear();
  place(items, live);
  profile_.commit();
  index_spans();
  if (network_.transfers) load_transfers();
}

void State::index_spans() {
  constexpr std::size_t kItems = 24, kMostParts = 64;
  const std::size_t parts = std::clamp<std::size_t>(count_ / kItems, 1, kMostParts);
  std::vector<std::vector<Value>> spans(parts);
  const auto part = [&](Slot slot) { return slot.index() * parts / occupant_.size(); };
  for (const Value value : network_.bytes.ids()) {
    const Node maker = network_.maker(value);
    if (network_.bytes_of(value) == 0) continue;
    if (!network_.may_repeat(maker) && !network_.transfers) continue;
    const Slot begin = slot(first_of(maker)),
               end = end_slot(server(value, Slot(slot_count())), value);
    // Neighbours at most three slots apart never stall for long.
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

std::vector<Event> State::sequence() const {
  std::vector<Event> sequence;
  sequence.reserve(count_);
  for (Item item : occupant_) {
    if (!item.valid()) continue;
    const Node node = this->node(item);
    if (network_.is_op(node))
      sequence.push_back(Event::compute(Network::op_of(node)));
    else if (network_.is_fetch(node))
      sequence.push_back(Event::fetch(network_.tensor[network_.value_of(node)]));
    else if (network_.is_hold(node))
      sequence.push_back(Event::hold(network_.tensor[network_.value_of(node)]));
  }
  return sequence;
}

void State::refresh_in_place(Item item) {
  if (network_.overwrites(node(item)).empty()) return;
  const double now = overwritten(item);
  profile_.add(slot(item), slot(item), in_place_[item] - now);
  in_place_[item] = now;
  if (network_.transfers) touch_overwritten(item);
}

void State::refresh_noted() {
  for (const Item item : stale_)
    if (present(item)) refresh_in_place(item);
  stale_.clear();
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
    ends_at_.push_back(static_cast<std::int32_t>(ends_.size()) - first_output(node));
    ends_.resize(ends_.size() + outputs);
    listed_.push_back(-1);
    in_place_.push_back(0);
    if (network_.transfers) at_item_.push_back(-1);
  } else {
    item = spare.back();
    spare.pop_back();
    ends_at_[item] += first_output(node_[item]) - first_output(node);
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
    touch(value);
    Item& last = end_ref(server(value, here), value);
    if (slot(last) >= here) continue;
    note_in_place(last);
    profile_.add(slot(last) + 1, here, network_.bytes_of(value));
    last = item;
  }
}

void State::detach(Item item) {
  const Slot here = slot(item);
  for (Value value : network_.inputs(node(item))) {
    touch(value);
    const Item server = this->server(value, here);
    Item& last = end_ref(server, value);
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
  compute_time_ += network_.time_of(node);
  touch(here);

  // Inserts into the chain of the node's items. The first computation comes before all others.
  Item after = kNone, earlier = last_of(node);
  while (earlier != kNone && slot(earlier) > here) {
    after = earlier;
    earlier = previous(earlier);
  }
  previous_[item] = earlier;
  next_[item] = after;
  if (earlier != kNone) next_[earlier] = item;
  (after == kNone ? last_[node] : previous_[after]) = item;
  if (network_.transfers) count_fetch(node, 1);

  double born = network_.workspace[node];
  for (Value value : network_.outputs(node)) {
    const Item before_it = network_.transfers ? server(value, here) : earlier;
    Item& earlier_end = end_ref(before_it, value);
    if (slot(earlier_end) > here) {
      end_ref(item, value) = earlier_end;
      const Item use = last_use(value, slot(before_it), here);
      earlier_end = use == kNone ? before_it : use;
      note_in_place(earlier_end);
      profile_.add(slot(earlier_end) + 1, here - 1, -network_.bytes_of(value));
    } else {
      end_ref(item, value) = item;
      born += network_.bytes_of(value);
    }
    touch(value);
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
  for (Value value : network_.outputs(op)) {
    touch(value);
    if (end(item, value) == item) {
      dying += network_.bytes_of(value);
    } else {
      const Item before_it = network_.transfers ? server(value, here) : earlier;
      note_in_place(end(before_it, value));
      profile_.add(end_slot(before_it, value) + 1, here - 1, network_.bytes_of(value));
      end_ref(before_it, value) = end(item, value);
    }
  }
  profile_.vacate(here, dying);
  if (earlier != kNone) next_[earlier] = after;
  (after == kNone ? last_[op] : previous_[after]) = earlier;
  if (network_.transfers) count_fetch(op, -1);
  touch(here);
  occupant_[here] = kNone;
  slot_[item] = Slot();
  --count_;
  compute_time_ -= network_.time_of(op);
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
  double carried = 0;  // outputs with readers: live from the item on, wherever it is
  for (Value value : network_.outputs(op)) {
    touch(value);
    const double bytes = network_.bytes_of(value);
    (end(item, value) == item ? own : carried) += bytes;
  }
  touch(from);
  touch(to);
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
  profile_.reverted();
  duration_ = committed_duration_;
}

void State::commit() {
  for (const Entry& entry : log_)
    if (entry.change == Change::remove) spare_of(entry.node).push_back(entry.item);
  log_.clear();
  profile_.commit();
  settle();
  committed_duration_ = duration_;
}

}  // namespace lowtide::solve::local

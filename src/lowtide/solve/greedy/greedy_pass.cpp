// The sweep: live tensors, later recomputations, and the tensors held for them. The choice:
// greedy_pick.cpp.
#include "lowtide/solve/greedy/greedy_pass.h"

#include <algorithm>
#include <utility>

#include "lowtide/solve/sequence/in_place.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::greedy {

namespace {
// Retries of a tensor whose operands did not fit earlier: later choices may have freed bytes there.
constexpr int kRefusals = 8;
}  // namespace

GreedyPass::GreedyPass(const Graph& graph, std::span<const OpId> order,
                       const GreedySettings& settings, Limits& limits)
    : graph_(graph),
      settings_(settings),
      limits_(limits),
      deadlines_(rerun_deadlines(graph, order)),
      list_(order.size() + 1),
      ops_(order.begin(), order.end()),
      tensors_(graph.tensor_count()),
      pending_(graph.op_count(), OrderList::kNone),
      repeats_(graph.op_count(), 0),
      op_marks_(graph.op_count(), 0) {
  ops_.emplace_back();  // the end, where outputs are read
  for (std::size_t i = 0; i < ops_.size(); ++i) slots_.push_back(i);
  index_uses();
  enter_inputs();
}

void GreedyPass::index_uses() {
  uses_begin_.assign(graph_.tensor_count() + 1, 0);
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    uses_begin_[i + 1] = uses_begin_[i] + graph_.consumers(TensorId(i)).size() +
                         (graph_.is_output(TensorId(i)) ? 1 : 0);
  uses_.resize(uses_begin_.back());
  auto next = uses_begin_;
  const std::size_t end = ops_.size() - 1;
  for (std::size_t at = 0; at < end; ++at)
    for (TensorId input : graph_.inputs(ops_[at]))
      uses_[next[input.index()]++] = static_cast<Item>(at);
  for (TensorId output : graph_.outputs()) uses_[next[output.index()]++] = static_cast<Item>(end);
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) tensors_[i].cursor = uses_begin_[i];
}

void GreedyPass::enter_inputs() {
  live_ = graph_.resident() + graph_.input_bytes();
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph_.is_input(id)) continue;
    state(id).live = true;
    if (!stays_live(id)) live_ -= graph_.bytes(id);
  }
}

std::optional<std::vector<OpId>> GreedyPass::run() {
  std::vector<OpId> sequence;
  const auto end = static_cast<Item>(deadlines_.size());
  for (Item item = list_.first(); item != end; item = list_.next(item)) {
    if (!step(item)) return std::nullopt;
    sequence.push_back(op_of(item));
  }
  return sequence;
}

Bytes GreedyPass::peak() const {
  const Bytes start = graph_.resident() + graph_.input_bytes();
  return profile_.size() == 0 ? start : std::max(start, profile_.max_from(0));
}

bool GreedyPass::step(Item item) {
  const OpId op = op_of(item);
  now_ = item;
  Bytes during = live_ + graph_.workspace(op);
  for (TensorId input : graph_.inputs(op)) state(input).busy = item;
  for (TensorId output : graph_.outputs(op)) {
    state(output).busy = item;
    during += graph_.bytes(output);
  }
  const auto saved = [&] {
    return overwritten_bytes(graph_, op, [&](TensorId id) { return ends_at(id, item); });
  };
  Bytes in_place = saved();
  during -= in_place;
  while (during > settings_.limit) {
    const auto id = pick();
    if (!id) break;
    if (!give_up(*id, during)) {
      if (state(*id).refusals++ < kRefusals) refused_.push_back(*id);
      continue;
    }
    // A recomputed op may read tensors that would have ended here.
    const Bytes before = std::exchange(in_place, saved());
    during += before - in_place;
  }
  for (TensorId id : refused_)
    if (state(id).live) push(id);
  refused_.clear();
  profile_.append(during);
  done_.push_back(op);
  ended_.emplace_back();
  for (const InPlacePair& pair : graph_.overwrites(op))
    if (ends_at(pair.input, item)) ended_.back().push_back(pair.input);
  finish(item);
  const auto links = graph_.inputs(op).size() + graph_.outputs(op).size();
  return !limits_.spend(static_cast<std::int64_t>(1 + links / 4));
}

void GreedyPass::finish(Item item) {
  const OpId op = op_of(item);
  if (pending_[op.index()] == item) pending_[op.index()] = OrderList::kNone;
  for (TensorId output : graph_.outputs(op)) {
    live_ += graph_.bytes(output);
    state(output).live = true;
    state(output).frees_nothing = false;
    state(output).refusals = 0;
    state(output).last = profile_.size();
  }
  for (TensorId input : graph_.inputs(op)) {
    TensorState& read = state(input);
    read.last = profile_.size();
    if (read.recomputed_later) read.frees_nothing = false;
    if (is_own(item)) {
      ++read.cursor;
    } else {
      std::pop_heap(read.repeats_reading.begin(), read.repeats_reading.end(), later());
      read.repeats_reading.pop_back();
    }
  }
  const auto stay_or_go = [&](TensorId id) {
    if (!stays_live(id)) live_ -= graph_.bytes(id);
  };
  for (TensorId input : graph_.inputs(op)) stay_or_go(input);
  for (TensorId output : graph_.outputs(op)) stay_or_go(output);
  if (is_own(item)) return;
  for (TensorId output : graph_.outputs(op))
    if (state(output).live) push_readers(output);
}

OrderList::Item GreedyPass::earlier(Item a, Item b) const {
  if (a == OrderList::kNone || b == OrderList::kNone) return a == OrderList::kNone ? b : a;
  return list_.before(a, b) ? a : b;
}

OrderList::Item GreedyPass::next_use(TensorId id) const {
  const TensorState& tensor = state(id);
  const bool has_own = tensor.cursor < uses_begin_[id.index() + 1];
  return earlier(
      has_own ? uses_[tensor.cursor] : OrderList::kNone,
      tensor.repeats_reading.empty() ? OrderList::kNone : tensor.repeats_reading.front());
}

bool GreedyPass::ends_before(TensorId id, Item next) const {
  const OpId producer = graph_.producer(id);
  const Item repeat = producer.valid() ? pending_[producer.index()] : OrderList::kNone;
  return next == OrderList::kNone || (repeat != OrderList::kNone && !list_.before(next, repeat));
}

bool GreedyPass::ends_at(TensorId id, Item item) const {
  const TensorState& tensor = state(id);
  const auto& repeats = tensor.repeats_reading;
  const std::size_t own = tensor.cursor + (is_own(item) ? 1 : 0);
  Item next = own < uses_begin_[id.index() + 1] ? uses_[own] : OrderList::kNone;
  // If the item is a recomputation, it is the top of the heap itself; then the next use is below
  // it.
  if (is_own(item)) {
    if (!repeats.empty()) next = earlier(next, repeats.front());
  } else {
    for (std::size_t i = 1; i < std::min<std::size_t>(3, repeats.size()); ++i)
      next = earlier(next, repeats[i]);
  }
  return ends_before(id, next);
}

bool GreedyPass::ended_at(std::size_t step, TensorId id) const {
  return std::ranges::find(ended_[step], id) != ended_[step].end();
}

void GreedyPass::set_end(TensorId id, bool ends) {
  if (state(id).last == 0) return;  // an input without readers so far
  const std::size_t step = state(id).last - 1;
  if (graph_.overwrites(done_[step]).empty()) return;
  std::vector<TensorId>& ended = ended_[step];
  const auto saved = [&] {
    return overwritten_bytes(graph_, done_[step],
                             [&](TensorId input) { return ended_at(step, input); });
  };
  const Bytes before = saved();
  if (ends)
    ended.push_back(id);
  else
    std::erase(ended, id);
  const Bytes more = saved() - before;
  if (more == Bytes(0)) return;
  profile_.add_from(step, Bytes(-more.count()));
  profile_.add_from(step + 1, more);
}

bool GreedyPass::stays_live(TensorId id) {
  const bool read = !ends_before(id, next_use(id));
  const bool stays = state(id).live && (read || !graph_.freeable(id));
  state(id).live = stays;
  if (stays) push(id);
  return stays;
}

// Frees the tensor after its last use, and has it recomputed before its next use. Returns false,
// and changes nothing, if a freed input that must then be held would have exceeded the budget.
bool GreedyPass::give_up(TensorId id, Bytes& during) {
  limits_.spend(static_cast<std::int64_t>(1 + repetition_.revived.size()));
  std::size_t begin = state(id).last;
  for (TensorId input : repetition_.revived) {
    const std::size_t last = state(input).last;
    begin = std::min(begin, last > 0 && ended_at(last - 1, input) ? last - 1 : last);
  }
  const bool has_past = begin < profile_.size();
  const Bytes before = has_past ? profile_.max_from(begin) : Bytes(0);
  const auto change = [&](bool goes) {
    const std::int64_t sign = goes ? 1 : -1;
    set_end(id, goes);
    profile_.add_from(state(id).last, Bytes(-sign * graph_.bytes(id).count()));
    for (TensorId input : repetition_.revived) {
      set_end(input, !goes);
      profile_.add_from(state(input).last, Bytes(sign * graph_.bytes(input).count()));
    }
  };
  change(true);
  if (has_past && profile_.max_from(begin) > std::max(settings_.limit, before)) {
    change(false);
    return false;
  }
  const Bytes freed = graph_.bytes(id) - repetition_.charge;
  during -= freed;
  live_ -= freed;
  state(id).live = false;
  const Item next = next_use(id);
  for (OpId op : repetition_.ops) schedule(op, next);
  for (OpId op : repetition_.ops) drop(op, during);
  for (TensorId input : repetition_.revived) {
    state(input).live = true;
    push(input);
    push_readers(input);
  }
  return true;
}

void GreedyPass::schedule(OpId op, Item next) {
  const Item repeat = list_.insert_before(next);
  ops_.push_back(op);
  slots_.push_back(slot(next));
  pending_[op.index()] = repeat;
  ++repeats_[op.index()];
  for (TensorId input : graph_.inputs(op)) {
    auto& readers = state(input).repeats_reading;
    readers.push_back(repeat);
    std::push_heap(readers.begin(), readers.end(), later());
  }
}

// The recomputation serves all uses of the op's outputs after it, so they may be freed until then.
void GreedyPass::drop(OpId op, Bytes& during) {
  for (TensorId output : graph_.outputs(op)) {
    if (!state(output).live || state(output).busy == now_) continue;
    if (list_.before(next_use(output), pending_[op.index()])) continue;
    state(output).live = false;
    set_end(output, true);
    profile_.add_from(state(output).last, Bytes(-graph_.bytes(output).count()));
    live_ -= graph_.bytes(output);
    during -= graph_.bytes(output);
  }
}

}  // namespace lowtide::solve::greedy

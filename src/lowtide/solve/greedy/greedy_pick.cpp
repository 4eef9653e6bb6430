// The choice of the next tensor, and of its recomputation.
#include <algorithm>
#include <utility>

#include "lowtide/solve/greedy/greedy_pass.h"

namespace lowtide::solve::greedy {

double GreedyPass::score(Bytes freed, Ticks time) const {
  const auto bytes = static_cast<double>(freed.count());
  if (settings_.choice == GreedyChoice::bytes) return bytes;
  // Half a tick for ops without duration: among these, most bytes first
  return bytes / std::max(0.5, static_cast<double>(time.count()));
}

bool GreedyPass::may_repeat(OpId op, Item next) const {
  return op.valid() && graph_.recomputable(op) && repeats_[op.index()] < settings_.repeats &&
         pending_[op.index()] == OrderList::kNone && slot(next) <= deadlines_[op.index()];
}

void GreedyPass::push(TensorId id) {
  const OpId producer = graph_.producer(id);
  if (!producer.valid() || graph_.bytes(id).count() == 0) return;
  const Item next = next_use(id);
  TensorState& tensor = state(id);
  const Candidate candidate{score(graph_.bytes(id), graph_.time(producer)), slot(next), id};
  if (tensor.frees_nothing || tensor.queued == candidate || !may_repeat(producer, next)) return;
  candidates_.push(tensor.queued = candidate);
}

// Makes candidates of the tensors computed from one that is live again. Limited for each tensor,
// since one with many readers would cost as many steps each time.
void GreedyPass::push_readers(TensorId id) {
  if (state(id).revived++ >= settings_.repeats) return;
  limits_.spend(static_cast<std::int64_t>(graph_.consumers(id).size()) / 4);
  for (OpId reader : graph_.consumers(id))
    for (TensorId made : graph_.outputs(reader))
      if (state(made).live && state(made).busy != now_) {
        state(made).frees_nothing = false;
        push(made);
      }
}

void GreedyPass::collect(OpId op, Item next) {
  const auto is_new = [&](std::uint32_t& mark) {
    return std::exchange(mark, collection_) != collection_;
  };
  op_marks_[op.index()] = collection_;
  repetition_.time += graph_.time(op);
  ++repetition_.started;
  limits_.spend(static_cast<std::int64_t>(1 + graph_.inputs(op).size() / 4));
  for (TensorId input : graph_.inputs(op)) {
    if (state(input).live) continue;
    const OpId producer = graph_.producer(input);
    if (producer.valid()) {
      const Item repeat = pending_[producer.index()];
      if (repeat != OrderList::kNone && list_.before(repeat, next)) continue;
      repetition_.recomputed_later |= repeat != OrderList::kNone;
      if (op_marks_[producer.index()] == collection_) continue;
    }
    if (repetition_.started < settings_.block && may_repeat(producer, next)) {
      collect(producer, next);
    } else if (is_new(state(input).mark)) {
      repetition_.revived.push_back(input);
      repetition_.charge += graph_.bytes(input);
    }
  }
  repetition_.ops.push_back(op);
}

std::optional<TensorId> GreedyPass::pick() {
  while (!candidates_.empty() && !limits_.spend()) {
    Candidate top = candidates_.top();
    candidates_.pop();
    TensorState& tensor = state(top.tensor);
    if (tensor.queued != top) continue;
    tensor.queued = {};
    // Tensors of the running op return when the step is done.
    if (!tensor.live || tensor.busy == now_) continue;
    const OpId producer = graph_.producer(top.tensor);
    const Item next = next_use(top.tensor);
    if (!may_repeat(producer, next)) continue;
    repetition_ = {};
    ++collection_;
    collect(producer, next);
    const Bytes freed = graph_.bytes(top.tensor) - repetition_.charge;
    tensor.recomputed_later = repetition_.recomputed_later;
    tensor.frees_nothing = freed.count() <= 0;
    if (tensor.frees_nothing) continue;
    const double now = score(freed, repetition_.time);
    if (now >= top.score) return top.tensor;
    top.score = now;
    candidates_.push(tensor.queued = top);
  }
  return std::nullopt;
}

}  // namespace lowtide::solve::greedy

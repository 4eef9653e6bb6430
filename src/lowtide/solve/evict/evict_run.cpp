// The sweep: live tensors, evictions, recomputations. Scores: evict_score.cpp.
#include "lowtide/solve/evict/evict_run.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/solve/evict/rerun.h"
#include "lowtide/solve/sequence/in_place.h"

namespace lowtide::solve::evict {

namespace {
constexpr std::size_t kNever = SIZE_MAX;
// Independent of the graph's links: a plan of this size is priced within the time that a stop may
// take.
constexpr double kFreeLinks = 4e6;
}  // namespace

EvictRun::EvictRun(const Graph& graph, std::span<const OpId> order, const EvictSettings& settings,
                   Context& context)
    : graph_(graph),
      order_(order),
      settings_(settings),
      context_(context),
      rerunnable_(rerunnable_ops(graph, order)),
      last_need_(last_needs(graph, order, rerunnable_)),
      tensors_(graph.tensor_count()),
      visited_(graph.tensor_count(), 0),
      max_length_(static_cast<std::size_t>(context.options().number("growth") *
                                           static_cast<double>(graph.op_count()))),
      max_links_(std::max(kFreeLinks, context.options().number("growth") *
                                          static_cast<double>(graph.link_count()))) {
  index_uses();
  enter_inputs();
}

void EvictRun::index_uses() {
  uses_begin_.assign(graph_.tensor_count() + 1, 0);
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    uses_begin_[i + 1] = uses_begin_[i] + graph_.consumers(TensorId(i)).size();
  uses_.resize(uses_begin_.back());
  auto next = uses_begin_;
  for (std::size_t at = 0; at < order_.size(); ++at)
    for (TensorId input : graph_.inputs(order_[at])) uses_[next[input.index()]++] = at;
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    tensors_[i].cursor = uses_begin_[i];
    const bool used = uses_begin_[i] < uses_begin_[i + 1];
    tensors_[i].next_use = used ? uses_[uses_begin_[i]] : kNever;
  }
}

void EvictRun::enter_inputs() {
  live_ = graph_.resident() + graph_.input_bytes();
  peak_ = live_;
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph_.is_input(id)) continue;
    tensors_[i].live = tensors_[i].made = true;
    if (graph_.freeable(id)) push(id);
  }
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    const OpId producer = graph_.producer(TensorId(i));
    if (!producer.valid() || rerunnable_[producer.index()] == 0) retiring_.emplace_back(i);
  }
  std::stable_sort(retiring_.begin(), retiring_.end(), [&](TensorId a, TensorId b) {
    return last_need_[a.index()] > last_need_[b.index()];
  });
}

// Adds tensors to the heap that cannot be recomputed and are no longer needed.
void EvictRun::retire() {
  while (!retiring_.empty() && last_need_[retiring_.back().index()] < now_) {
    if (state(retiring_.back()).live) push(retiring_.back());
    retiring_.pop_back();
  }
}

std::optional<std::vector<OpId>> EvictRun::build() {
  for (now_ = 0; now_ < order_.size(); ++now_) {
    retire();
    if (!produce(order_[now_])) return std::nullopt;
    advance_uses(order_[now_]);
  }
  for (TensorId output : graph_.outputs()) {
    if (!state(output).live && !produce(graph_.producer(output))) return std::nullopt;
    lock(output);
  }
  return std::move(sequence_);
}

bool EvictRun::produce(OpId target) {
  std::vector<Frame> frames{{target}};
  while (!frames.empty()) {
    Frame& frame = frames.back();
    const auto inputs = graph_.inputs(frame.op);
    if (frame.next_input < inputs.size()) {
      const TensorId input = inputs[frame.next_input];
      if (state(input).live) {
        lock(input);
        ++frame.next_input;
      } else {
        check(rerunnable_[graph_.producer(input).index()] != 0,
              "a tensor was evicted that cannot be made again");
        frames.push_back({graph_.producer(input)});
      }
      continue;
    }
    const OpId op = frame.op;
    frames.pop_back();
    // An op runs only if none of its outputs is live.
    Bytes needed = graph_.workspace(op);
    for (TensorId output : graph_.outputs(op)) {
      if (state(output).live) evict(output);
      needed += graph_.bytes(output);
    }
    std::vector<TensorId> over;  // inputs that the op overwrites
    needed -= overwritten_bytes(graph_, op, [&](TensorId id) {
      if (!ends_with(op, id)) return false;
      over.push_back(id);
      return true;
    });
    // A plan of 2^63 ticks or more is no plan.
    if (!make_room(needed) || graph_.time(op) > Ticks::max() - duration_) return false;
    run(op);
    for (TensorId input : inputs) unlock(input);
    for (TensorId gone : over) evict(gone);
    const auto links = inputs.size() + graph_.outputs(op).size();
    links_ += static_cast<double>(links);
    const bool better = !context_.has_plan() || duration_ < context_.best_cost().duration;
    if (!better || sequence_.size() > max_length_ || links_ > max_links_ ||
        context_.limits().spend(4 + static_cast<std::int64_t>(links / 32)))
      return false;
  }
  return true;
}

bool EvictRun::make_room(Bytes needed) {
  constexpr int kRescorings = 24;
  while (live_ + needed > settings_.target && !heap_.empty()) {
    Entry lowest = heap_.top();
    int rescored = 0;
    for (;; ++rescored) {
      if (context_.limits().spend()) return false;
      heap_.pop();
      if (lowest.version != state(lowest.tensor).version || !evictable(lowest.tensor)) {
        lowest.tensor = TensorId();
      } else if (state(lowest.tensor).locks > 0) {
        state(lowest.tensor).parked = true;
        lowest.tensor = TensorId();
      } else {
        lowest.key = key(lowest.tensor);
        if (heap_.empty() || lowest.key <= heap_.top().key || rescored >= kRescorings) break;
        heap_.push(lowest);
      }
      if (heap_.empty()) break;
      lowest = heap_.top();
    }
    if (lowest.tensor.valid()) evict(lowest.tensor);
  }
  peak_ = std::max(peak_, live_ + needed);
  return true;
}

void EvictRun::run(OpId op) {
  sequence_.push_back(op);
  duration_ += graph_.time(op);
  for (TensorId output : graph_.outputs(op)) set_live(output);
}

void EvictRun::set_live(TensorId id) {
  TensorState& tensor = state(id);
  live_ += graph_.bytes(id);
  tensor.live = tensor.made = true;
  if (tensor.group >= 0) {
    group_time_[static_cast<std::size_t>(find_group(tensor.group))] -=
        static_cast<double>(graph_.time(graph_.producer(id)).count());
    tensor.group = -1;
  }
  push(id);
}

void EvictRun::evict(TensorId id) {
  TensorState& tensor = state(id);
  live_ -= graph_.bytes(id);
  tensor.live = false;
  ++tensor.version;
  if (settings_.score == EvictScore::dtr_eq && graph_.producer(id).valid()) join_groups(id);
}

void EvictRun::advance_uses(OpId op) {
  for (TensorId input : graph_.inputs(op)) {
    TensorState& tensor = state(input);
    const std::size_t end = uses_begin_[input.index() + 1];
    while (tensor.cursor < end && uses_[tensor.cursor] <= now_) ++tensor.cursor;
    tensor.next_use = tensor.cursor < end ? uses_[tensor.cursor] : kNever;
    if (tensor.live) push(input);
  }
}

// Locked tensors stay out of the heap. Otherwise an op with many inputs would remove and reinsert
// all of them for each of its recomputed inputs.
void EvictRun::unlock(TensorId id) {
  TensorState& tensor = state(id);
  if (--tensor.locks == 0 && std::exchange(tensor.parked, false)) push(id);
}

bool EvictRun::dead(TensorId id) const {
  return state(id).next_use == kNever && !graph_.is_output(id) && now_ > last_need_[id.index()];
}

// Whether the op's first computation is the last that may ever need this input.
bool EvictRun::ends_with(OpId op, TensorId id) const {
  const TensorState& tensor = state(id);
  return now_ < order_.size() && op == order_[now_] && tensor.locks == 1 &&
         tensor.next_use == now_ && tensor.cursor + 1 == uses_begin_[id.index() + 1] &&
         !graph_.is_output(id) && last_need_[id.index()] <= now_;
}

bool EvictRun::evictable(TensorId id) const {
  if (!state(id).live || !graph_.freeable(id)) return false;
  if (graph_.is_output(id) && (settings_.keep_outputs || graph_.is_input(id))) return false;
  const OpId producer = graph_.producer(id);
  return dead(id) || (producer.valid() && rerunnable_[producer.index()] != 0);
}

void EvictRun::push(TensorId id) {
  if (!graph_.freeable(id)) return;
  heap_.push({key(id), id, ++state(id).version});
}

}  // namespace lowtide::solve::evict

// The end of the forward, the possible cuts, and the recomputations of a segment.
#include "lowtide/solve/sqrt/sqrt_segments.h"

#include <algorithm>
#include <utility>

#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::sqrt {

namespace {

// Before the barrier; else before the first op with phase "backward"; else where the order has most
// bytes in use.
std::size_t turning_point(const Graph& graph, std::span<const OpId> order) {
  const auto first = [&](auto holds) {
    return static_cast<std::size_t>(std::find_if(order.begin(), order.end(), holds) -
                                    order.begin());
  };
  std::size_t at = first([&](OpId op) { return graph.is_barrier(op); });
  if (at == order.size()) at = first([&](OpId op) { return graph.op(op).phase == "backward"; });
  if (at < order.size()) return at;
  const Plan plan = plan_from_sequence(graph, order);
  const std::size_t peak = simulate(graph, plan).peak_step();
  at = 0;
  for (std::size_t i = 0; i < std::min(peak, plan.steps.size()); ++i)
    if (plan.steps[i].is_compute()) ++at;
  return at;
}

}  // namespace

Segments::Segments(const Graph& graph, std::span<const OpId> order)
    : graph_(graph),
      order_(order),
      turn_(turning_point(graph, order)),
      deadlines_(rerun_deadlines(graph, order)),
      last_read_(graph.tensor_count(), 0),
      saved_before_(turn_ + 1, 0),
      crossing_(turn_ + 1, 0),
      width_(turn_ + 1, 0) {
  for (std::size_t at = 0; at < turn_; ++at)
    for (TensorId input : graph.inputs(order[at]))
      if (!graph.is_input(input)) last_read_[input.index()] = at;
  std::vector<std::uint8_t> is_read_behind(graph.tensor_count(), 0);
  for (std::size_t at = turn_; at < order.size(); ++at)
    for (TensorId input : graph.inputs(order[at])) is_read_behind[input.index()] = 1;
  for (std::size_t at = 0; at < turn_; ++at) {
    std::int64_t saved = 0;
    for (TensorId made : graph.outputs(order[at])) {
      const std::int64_t bytes = graph.bytes(made).count();
      if (is_read_behind[made.index()] != 0) saved += bytes;
      // The tensor crosses every position from the next one to that of its last reader.
      const std::size_t last = last_read_[made.index()];
      if (last <= at) continue;
      crossing_[at + 1] += bytes;
      crossing_[last + 1] -= bytes;
      ++width_[at + 1];
      --width_[last + 1];
    }
    saved_before_[at + 1] = saved_before_[at] + saved;
  }
  for (std::size_t at = 1; at <= turn_; ++at) {
    crossing_[at] += crossing_[at - 1];
    width_[at] += width_[at - 1];
  }
}

bool Segments::has_single_cuts() const {
  for (std::size_t at = 1; at < turn_; ++at)
    if (width_[at] == 1 && saved_before_[at] > 0) return true;
  return false;
}

std::vector<std::size_t> Segments::choose_ends(std::int64_t limit, SqrtCuts cuts) const {
  std::vector<std::size_t> ends;
  std::size_t begin = 0;
  for (std::size_t at = 1; at < turn_; ++at) {
    const auto saved = [&](std::size_t end) { return saved_before_[end] - saved_before_[begin]; };
    if (saved(at) <= limit) continue;
    if (cuts == SqrtCuts::single) {
      if (width_[at] != 1) continue;
    } else {
      // A segment may become half as large again if fewer bytes cross its end then.
      std::size_t best = at;
      for (std::size_t later = at; later < turn_ && saved(later) <= limit + limit / 2; ++later)
        if (crossing_[later] < crossing_[best]) best = later;
      at = best;
    }
    ends.push_back(at);
    begin = at;
  }
  return ends;
}

Segmentation Segments::divide(Bytes limit, SqrtCuts cuts) const {
  Segmentation result;
  result.ends = choose_ends(limit.count(), cuts);
  std::vector<std::uint8_t> wanted(graph_.op_count(), 0);
  std::size_t begin = 0;
  for (std::size_t end : result.ends) {
    result.again.push_back(computed_again(begin, end, wanted));
    begin = end;
  }
  return result;
}

// The ops that make the tensors read after the forward, and their inputs inside the segment, except
// the kept tensors that cross its end. Ops that make a kept tensor are not recomputed.
std::vector<OpId> Segments::computed_again(std::size_t begin, std::size_t end,
                                           std::vector<std::uint8_t>& wanted) const {
  std::vector<OpId> again;
  for (std::size_t at = end; at > begin; --at) {
    const OpId op = order_[at - 1];
    const auto made = graph_.outputs(op);
    const bool keeps = std::any_of(made.begin(), made.end(),
                                   [&](TensorId id) { return last_read_[id.index()] >= end; });
    if (keeps || !graph_.recomputable(op)) continue;
    if (saved_before_[at] == saved_before_[at - 1] && wanted[op.index()] == 0) continue;
    again.push_back(op);
    for (TensorId input : graph_.inputs(op))
      if (const OpId producer = graph_.producer(input); producer.valid())
        wanted[producer.index()] = 1;
  }
  std::reverse(again.begin(), again.end());
  return again;
}

std::vector<OpId> Segments::sequence(const Segmentation& segments, std::size_t dropped) const {
  std::vector<std::size_t> segment_of(graph_.tensor_count(), dropped);
  for (std::size_t s = 0; s < dropped; ++s)
    for (OpId op : segments.again[s])
      for (TensorId made : graph_.outputs(op)) segment_of[made.index()] = s;
  std::vector<std::uint8_t> done(dropped + 1, 0);
  done[dropped] = 1;
  std::vector<OpId> sequence(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(turn_));
  for (std::size_t at = turn_; at < order_.size(); ++at) {
    for (TensorId input : graph_.inputs(order_[at])) {
      const std::size_t segment = segment_of[input.index()];
      if (std::exchange(done[segment], 1) != 0) continue;
      for (OpId op : segments.again[segment])
        if (at <= deadlines_[op.index()]) sequence.push_back(op);
    }
    sequence.push_back(order_[at]);
  }
  return sequence;
}

}  // namespace lowtide::solve::sqrt

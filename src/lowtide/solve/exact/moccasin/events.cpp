// The events of the paper's sections 2.1 and 2.3, and ranges that follow from the graph without
// search.
//
// Staged: op i is recomputed only at event i of a stage j > i, so s_i^1 = j(j+1)/2 is fixed, and
// (6) holds by construction. Computing an op is useful only up to the last stage that computes a
// reader of the op, for the first time or again. An op that may not run after another op has
// mutated its input has no events after that. If the graph has outputs, there is a stage n+1
// without a first computation, since a plan may recompute an output after everything else.
//
// Free: the first event of an op comes after those of all ops on which it depends, and before those
// of all ops that depend on it.
//
// Invariant: every plan of the paper's model remains, or another plan with the same computations
// that holds less at every event.
#include "lowtide/solve/exact/moccasin/events.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::exact::moccasin {

Events::Events(const Graph& graph, Domain domain, std::vector<OpId> order,
               std::vector<int> intervals)
    : graph_(graph),
      domain_(domain),
      order_(std::move(order)),
      intervals_(std::move(intervals)),
      position_(graph.op_count(), 0) {
  for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i].index()] = i + 1;
  for (std::size_t i = 0; i < intervals_.size(); ++i)
    if (!graph.recomputable(OpId(i))) intervals_[i] = 1;
  domain_ == Domain::staged ? find_stages() : find_ranges();
}

void Events::find_stages() {
  const std::size_t stages = order_.size();
  const auto deadlines = rerun_deadlines(graph_, order_);
  last_stage_.assign(graph_.op_count(), 0);
  for (std::size_t i = stages; i > 0; --i) {
    const OpId op = order_[i - 1];
    std::size_t last = 0;
    for (const TensorId made : graph_.outputs(op)) {
      if (graph_.is_output(made)) last = stages + 1;
      for (const OpId reader : graph_.consumers(made)) {
        last = std::max(last, position(reader));
        if (intervals(reader) > 1) last = std::max(last, last_stage_[reader.index()]);
      }
    }
    if (deadlines[op.index()] < stages) last = std::min(last, deadlines[op.index()] + 1);
    last_stage_[op.index()] = last;
    if (last <= i) intervals_[op.index()] = 1;
  }
  end_ = event(stages + 1, stages + 1);
}

void Events::find_ranges() {
  const std::int64_t most = std::accumulate(intervals_.begin(), intervals_.end(), std::int64_t{0});
  end_ = most + 1;
  earliest_.assign(graph_.op_count(), 1);
  latest_.assign(graph_.op_count(), most);
  // Exact if the ancestors form a chain, and a valid range otherwise.
  for (const OpId op : order_)
    for (const OpId before : graph_.predecessors(op))
      earliest_[op.index()] = std::max(earliest_[op.index()], earliest_[before.index()] + 1);
  for (auto at = order_.rbegin(); at != order_.rend(); ++at)
    for (const OpId next : graph_.successors(*at))
      latest_[at->index()] = std::min(latest_[at->index()], latest_[next.index()] - 1);
}

Events::Range Events::starts(OpId op, int k) const {
  if (domain_ == Domain::free)
    return {earliest_[op.index()] + k, k == 0 ? latest_[op.index()] : end_ - 1};
  const auto i = static_cast<std::int64_t>(position(op));
  if (k == 0) return {i, i};
  return {i + k, static_cast<std::int64_t>(last_stage_[op.index()])};
}

std::int64_t Events::last_read(TensorId tensor) const {
  if (graph_.is_output(tensor)) return end_;
  std::int64_t last = 0;
  for (const OpId reader : graph_.consumers(tensor)) {
    std::int64_t at = end_ - 1;
    if (domain_ == Domain::staged) {
      const auto stage = intervals(reader) > 1 ? last_stage_[reader.index()] : position(reader);
      at = event(stage, position(reader));
    }
    last = std::max(last, at);
  }
  return last;
}

}  // namespace lowtide::solve::exact::moccasin

// With the given order, the positions of two ops decide which is first. With a free order, only the
// ancestors of an op certainly come before it, and only its descendants after it.
#include "lowtide/solve/bounds/cut/cut_point.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

#include "lowtide/graph/reach.h"

namespace lowtide::solve::bounds {

CutPoint cut_point_of(const Problem& problem, OpId op) {
  const Graph& graph = problem.graph;
  CutPoint cut{op, std::vector<Side>(graph.op_count(), Side::either)};
  if (problem.order == Order::given) {
    for (std::size_t i = 0; i < graph.op_count(); ++i)
      cut.side[i] = graph.position(OpId(i)) < graph.position(op) ? Side::before : Side::after;
  } else {
    const std::array<OpId, 1> of = {op};
    const std::vector<bool> before = ancestors(graph, of), after = descendants(graph, of);
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      if (before[i]) cut.side[i] = Side::before;
      if (after[i]) cut.side[i] = Side::after;
    }
  }
  cut.side[op.index()] = Side::at;
  return cut;
}

AfterCut::AfterCut(const Graph& graph, const CutPoint& cut_point)
    : graph_(graph), cut_point_(cut_point), changed_(graph.tensor_count(), 0) {
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    if (cut_point.side[i] == Side::before || cut_point.side[i] == Side::at)
      for (TensorId id : graph.mutates(OpId(i))) changed_[id.index()] = 1;
}

bool AfterCut::can_run(OpId op) const {
  if (!op.valid()) return false;
  // The first computation of the op may still come.
  if (cut_point_.side[op.index()] == Side::either) return true;
  if (!graph_.recomputable(op)) return false;
  for (TensorId id : graph_.inputs(op))
    if (changed(id)) return false;
  for (TensorId id : graph_.outputs(op))
    if (graph_.is_output(id) && changed(id)) return false;
  return true;
}

std::vector<Bytes> own_profile(const Graph& graph) {
  std::vector<Bytes> profile(graph.op_count() + 1);
  const std::size_t end = graph.op_count();
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    const OpId producer = graph.producer(id);
    const std::size_t from = producer.valid() ? graph.position(producer) : 0;
    std::size_t past = producer.valid() ? from + 1 : 0;
    for (OpId reader : graph.consumers(id)) past = std::max(past, graph.position(reader) + 1);
    if (graph.is_output(id) || !graph.freeable(id)) past = end;
    profile[from] += graph.bytes(id);
    profile[past] -= graph.bytes(id);
  }
  profile.pop_back();
  Bytes live = graph.resident();
  for (std::size_t at = 0; at < end; ++at) {
    live += profile[at];
    profile[at] = live + graph.least_workspace(graph.order()[at]);
  }
  return profile;
}

namespace {

using Steps = std::span<const std::size_t>;  // of the given order

std::vector<std::size_t> steps_over_budget(const Problem& problem, std::span<const Bytes> profile) {
  std::vector<std::size_t> over;
  for (std::size_t at = 0; at < profile.size(); ++at)
    if (profile[at] > problem.budget) over.push_back(at);
  return over;
}

std::size_t highest(Steps steps, std::span<const Bytes> profile) {
  return *std::ranges::max_element(steps, {}, [&](std::size_t at) { return profile[at]; });
}

// Divides the steps into `count` ranges of equal length. The range with the highest step comes
// first.
std::vector<Steps> shares_of(Steps steps, std::span<const Bytes> profile, std::size_t count) {
  count = std::min(count, steps.size());
  std::vector<Steps> shares;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = steps.size() * i / count;
    shares.push_back(steps.subspan(begin, steps.size() * (i + 1) / count - begin));
  }
  std::ranges::stable_sort(shares, std::greater{},
                           [&](Steps share) { return profile[highest(share, profile)]; });
  return shares;
}

}  // namespace

std::vector<OpId> critical_ops(const Problem& problem, std::span<const Bytes> profile,
                               std::size_t count) {
  const std::vector<std::size_t> over = steps_over_budget(problem, profile);
  std::vector<OpId> ops;
  for (const Steps share : shares_of(over, profile, count))
    ops.push_back(problem.graph.order()[highest(share, profile)]);
  return ops;
}

std::vector<CutPoint> critical_chain(const Problem& problem, std::span<const Bytes> profile,
                                     std::size_t count) {
  const Graph& graph = problem.graph;
  const std::vector<std::size_t> over = steps_over_budget(problem, profile);
  std::vector<std::uint8_t> fits(graph.op_count(), 1);
  std::vector<CutPoint> chain;
  for (const Steps share : shares_of(over, profile, count)) {
    std::vector<std::size_t> fitting;
    std::ranges::copy_if(share, std::back_inserter(fitting),
                         [&](std::size_t at) { return fits[graph.order()[at].index()] != 0; });
    if (fitting.empty()) continue;
    chain.push_back(cut_point_of(problem, graph.order()[highest(fitting, profile)]));
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      const Side side = chain.back().side[i];
      if (side != Side::before && side != Side::after) fits[i] = 0;
    }
  }
  std::ranges::sort(chain, {}, [&](const CutPoint& cut) { return graph.position(cut.op); });
  return chain;
}

}  // namespace lowtide::solve::bounds

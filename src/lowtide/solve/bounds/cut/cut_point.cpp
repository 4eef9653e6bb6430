// Sweeps over the graph's own order; a free order leaves only ancestors and descendants certain.
#include "lowtide/solve/bounds/cut/cut_point.h"

#include <algorithm>
#include <array>

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

std::vector<OpId> critical_ops(const Problem& problem, std::span<const Bytes> profile,
                               std::size_t count) {
  std::vector<std::size_t> over;
  for (std::size_t at = 0; at < profile.size(); ++at)
    if (profile[at] > problem.budget) over.push_back(at);
  count = std::min(count, over.size());
  std::vector<std::size_t> chosen;
  for (std::size_t share = 0; share < count; ++share) {
    std::size_t best = over[over.size() * share / count];
    for (std::size_t i = over.size() * share / count; i < over.size() * (share + 1) / count; ++i)
      if (profile[over[i]] > profile[best]) best = over[i];
    chosen.push_back(best);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](std::size_t a, std::size_t b) { return profile[a] > profile[b]; });
  std::vector<OpId> ops;
  for (const std::size_t at : chosen) ops.push_back(problem.graph.order()[at]);
  return ops;
}

}  // namespace lowtide::solve::bounds

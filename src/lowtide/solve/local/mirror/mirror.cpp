// Problem: find an order of a training step that needs little recomputation.
//
// Idea: the backward should first consume the tensors that the forward made last. A recorded
// backward often deviates from that: weight gradients stand where the tracer put them, and
// gradients shared by several layers are summed late. So the backward is list-scheduled: of the
// ready ops, the one whose forward inputs were made last runs first. The forward is used in two
// orders: as given, and sorted by the longest path to the end. In a network with nested skip
// connections the second order goes straight to the smallest layers, and delays ops that only join
// the way back. The greedy of `drop` then makes a plan from each order.
//
// Invariant: every order is topological.
//
// Loses: if the given order was already chosen for its memory. `drop` starts from that one.
#include "lowtide/solve/local/mirror/mirror.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "lowtide/base/id_vector.h"
#include "lowtide/graph/phases.h"
#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/local/common/drop_gaps.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::local::mirror {

namespace {

// A list schedule: the ready op with the largest rank first; ties by the given order. Empty if
// stopped by the limits.
std::vector<OpId> by_rank(const Graph& graph, const IdVector<OpId, std::size_t>& rank,
                          Limits& limits) {
  std::priority_queue<std::pair<std::size_t, std::size_t>> ready;  // rank, distance from the end
  IdVector<OpId, std::size_t> waiting(graph.op_count());
  const auto push = [&](OpId op) {
    ready.emplace(rank[op], graph.op_count() - graph.position(op));
  };
  for (const OpId op : graph.order()) {
    waiting[op] = graph.predecessors(op).size();
    if (waiting[op] == 0) push(op);
  }
  std::vector<OpId> order;
  order.reserve(graph.op_count());
  while (!ready.empty()) {
    const OpId op = graph.order()[graph.op_count() - ready.top().second];
    ready.pop();
    order.push_back(op);
    if (limits.spend(static_cast<std::int64_t>(1 + graph.successors(op).size() / 16))) return {};
    for (const OpId next : graph.successors(op))
      if (--waiting[next] == 0) push(next);
  }
  return order;
}

// The length of the longest path from each op to the end.
IdVector<OpId, std::size_t> ways_to_go(const Graph& graph) {
  IdVector<OpId, std::size_t> longest(graph.op_count());
  const auto order = graph.order();
  for (std::size_t i = order.size(); i-- > 0;) {
    longest[order[i]] = 1;
    for (const OpId next : graph.successors(order[i]))
      longest[order[i]] = std::max(longest[order[i]], longest[next] + 1);
  }
  return longest;
}

// The forward in this order, then the backward: ops that read the latest forward tensors first, ops
// that read none of them at once.
std::vector<OpId> mirrored(const Graph& graph, const Phases& phases, std::span<const OpId> forward,
                           Limits& limits) {
  const std::size_t count = graph.op_count();
  IdVector<OpId, std::size_t> rank(count);
  std::size_t place = 0;  // among forward ops
  for (const OpId op : forward)
    if (phases.of[op] == Phase::forward) rank[op] = ++place;
  const IdVector<OpId, std::size_t> at = rank;
  for (const OpId op : forward) {
    if (phases.of[op] == Phase::forward) {
      rank[op] = 2 * count - at[op];
      continue;
    }
    std::size_t latest = 0;
    for (const OpId before : graph.predecessors(op))
      if (phases.of[before] == Phase::forward) latest = std::max(latest, at[before]);
    rank[op] = latest > 0 ? latest - 1 : count;
  }
  return by_rank(graph, rank, limits);
}

class Mirror final : public Solver {
 public:
  std::string_view name() const override { return "mirror"; }
  std::string_view summary() const override {
    return "reorders the backward to consume the forward's tensors last-made first; then the same "
           "greedy as drop";
  }
  Traits traits() const override { return {Trait::constructive}; }
  Support supports(const Problem& problem) const override {
    if (problem.order == Order::given)
      return Support::no("it changes the order, and the order is given");
    return supports_dropping(problem);
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    context.offer_events(own_events(problem.graph));
    if (!context.done()) drop_gaps(mirrored_orders(problem.graph, context.limits()), context);
    return context.finish();
  }
};

}  // namespace

std::vector<std::vector<OpId>> mirrored_orders(const Graph& graph, Limits& limits) {
  const Phases phases = phases_of(graph);
  limits.spend(static_cast<std::int64_t>(graph.op_count()));
  std::vector<std::vector<OpId>> orders;
  if (!phases.has_backward) return orders;
  const auto own = graph.order();
  const auto add = [&](std::span<const OpId> forward) {
    if (forward.empty() || limits.stopped()) return;
    std::vector<OpId> order = mirrored(graph, phases, forward, limits);
    if (!order.empty() && !std::ranges::equal(order, own) &&
        std::ranges::find(orders, order) == orders.end())
      orders.push_back(std::move(order));
  };
  add(by_rank(graph, ways_to_go(graph), limits));
  add(own);
  return orders;
}

std::unique_ptr<Solver> make_mirror() { return std::make_unique<Mirror>(); }

}  // namespace lowtide::solve::local::mirror

// Problem: in which order should a training step run, so that little must be computed again?
//
// Idea: what the forward makes last the backward should need first. A recorded backward seldom does
// so throughout: gradients of weights stand where the recorder put them, and what several layers
// share is added up late. So the backward is ordered anew: of the ops that are ready always the one
// whose forward tensors came last. The forward is taken as it is, and in a second order, in which
// the ops with the longest way to go come first: in a network of nested skip connections that is
// the way down to its smallest layers, and what only joins the way up is not made before that needs
// it. From each order drop makes a plan.
//
// Invariant: every order is topological.
//
// Loses: where the order as recorded was chosen for its memory already; drop, which begins from
// that one, is asked as well.
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

// The ready op with the largest rank goes first, of equal ones that which the graph has first.
// Empty if limits stop it.
std::vector<OpId> by_rank(const Graph& graph, const IdVector<OpId, std::size_t>& rank,
                          Limits& limits) {
  std::priority_queue<std::pair<std::size_t, std::size_t>> ready;  // rank, places from the end
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

// How many ops follow one another from this one on.
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

// The forward in this order, then the backward: what reads the latest of the forward goes first,
// and what reads nothing of it at once.
std::vector<OpId> mirrored(const Graph& graph, const Phases& phases, std::span<const OpId> forward,
                           Limits& limits) {
  const std::size_t count = graph.op_count();
  IdVector<OpId, std::size_t> rank(count);
  std::size_t place = 0;  // of the forward ops alone
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

// Problem: order the ops so that the peak is small, computing each op once. A plan within the
// budget has no overhead, so it is optimal.
//
// Idea: list heuristics give orders of the whole graph. Ops that are comparable with every other op
// cut all of these orders at the same positions, and the pieces between them are independent, so
// each piece takes the best order that any heuristic has for it. Then the piece with the largest
// peak is solved exactly (order_exact.cpp), as long as it determines the whole peak.
//
// Invariant: the peaks of pieces are independent: the live tensors at a cut are the same for every
// order.
//
// Loses: against every solver that recomputes, if no order fits; and on wide graphs without cuts,
// such as random layered ones, where the exact search gives up.
#include "lowtide/solve/order/order.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/graph/cuts.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/order/order_exact.h"
#include "lowtide/solve/order/order_lists.h"

namespace lowtide::solve::order {

namespace {

struct OrderPiece {
  std::vector<OpId> order;
  Bytes start;  // live before it
  Bytes peak = Bytes::max();
};

const std::array<OptionSpec, 2>& specs() {
  static const std::array<OptionSpec, 2> table = {{
      {.name = "max_piece",
       .usage = "largest piece, in ops, that is ordered exactly; the heuristics order larger ones",
       .default_number = 400,
       .low = 0,
       .high = 4096,
       .whole = true},
      {.name = "max_states",
       .usage = "most states (sets of computed ops) of the exact search of a piece",
       .default_number = 100000,
       .low = 1,
       .high = 10000000,
       .whole = true},
  }};
  return table;
}

class Search {
 public:
  Search(const Problem& problem, Context& context) : problem_(problem), context_(context) {
    const auto cuts = cut_ops(problem.graph);
    std::vector<std::uint8_t> is_cut(problem.graph.op_count(), 0);
    for (OpId cut : cuts) is_cut[cut.index()] = 1;
    piece_of_.resize(problem.graph.op_count());
    for (OpId op : problem.graph.order()) {
      if (pieces_.empty() || ended_) pieces_.emplace_back();
      piece_of_[op.index()] = pieces_.size() - 1;
      ended_ = is_cut[op.index()] != 0;
    }
  }

  // Gives each piece its order in the sequence, if that is better.
  void take(std::span<const OpId> order) {
    if (order.size() != problem_.graph.op_count()) return;
    const Plan plan = plan_from_sequence(problem_.graph, order);
    const Timeline timeline = simulate(problem_.graph, plan);
    context_.limits().spend(static_cast<std::int64_t>(order.size()));
    std::vector<OrderPiece> found(pieces_.size());
    for (OrderPiece& piece : found) piece.peak = Bytes(0);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (!plan.steps[i].is_compute()) continue;
      const OpId op = plan.steps[i].op();
      OrderPiece& piece = found[piece_of_[op.index()]];
      if (piece.order.empty()) {
        piece.start = timeline.live[i] - problem_.graph.workspace(op);
        for (TensorId made : problem_.graph.outputs(op)) piece.start -= problem_.graph.bytes(made);
        for (TensorId gone : plan.overwritten(plan.steps[i]))
          piece.start += problem_.graph.bytes(gone);
      }
      piece.peak = std::max(piece.peak, timeline.live[i]);
      piece.order.push_back(op);
    }
    bool better = pieces_.empty();  // a graph without ops has a plan too
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (found[i].peak >= pieces_[i].peak) continue;
      pieces_[i] = std::move(found[i]);
      better = true;
    }
    if (better) offer();
  }

  // Solves the pieces, the one with the largest peak first, until that peak is proven or small
  // enough. Results are offered only after as much work as an offer takes.
  void solve_pieces() {
    const auto max_piece = static_cast<std::size_t>(context_.options().number("max_piece"));
    const auto max_states = static_cast<std::size_t>(context_.options().number("max_states"));
    std::vector<OrderPiece*> worst_first;
    for (OrderPiece& piece : pieces_) worst_first.push_back(&piece);
    std::stable_sort(worst_first.begin(), worst_first.end(),
                     [](const OrderPiece* a, const OrderPiece* b) { return a->peak > b->peak; });
    // The largest proven peak of a piece; a least-time problem needs no peak below the budget.
    Bytes enough;
    if (problem_.objective == Objective::least_time) enough = problem_.budget;
    Limits& limits = context_.limits();
    const auto offer_cost = static_cast<std::int64_t>(problem_.graph.op_count());
    std::int64_t offered_at = limits.work();
    bool better = false;
    for (OrderPiece* piece : worst_first) {
      if (context_.done() || piece->peak <= enough || piece->order.size() > max_piece) break;
      auto exact =
          exact_order(problem_.graph, piece->order, piece->start, enough, max_states, limits);
      if (!exact) break;
      enough = std::max(enough, exact->peak);
      limits.spend(static_cast<std::int64_t>(piece->order.size()));
      if (exact->peak >= piece->peak) continue;
      piece->order = std::move(exact->order);
      piece->peak = exact->peak;
      better = true;
      if (limits.work() - offered_at < offer_cost) continue;
      offer();
      better = false;
      offered_at = limits.work();
    }
    if (better) offer();
  }

  std::vector<OpId> whole() const {
    std::vector<OpId> order;
    order.reserve(problem_.graph.op_count());
    for (const OrderPiece& piece : pieces_)
      order.insert(order.end(), piece.order.begin(), piece.order.end());
    return order;
  }

 private:
  void offer() {
    const auto order = whole();
#if LOWTIDE_DEBUG_CHECKS
    Bytes peak = problem_.graph.resident() + problem_.graph.input_bytes();
    for (const OrderPiece& piece : pieces_) peak = std::max(peak, piece.peak);
    const Plan plan = plan_from_sequence(problem_.graph, order);
    check(simulate(problem_.graph, plan).cost.peak == peak, "order lost count of bytes");
#endif
    context_.offer_sequence(order);
  }

  const Problem& problem_;
  Context& context_;
  std::vector<std::size_t> piece_of_;
  std::vector<OrderPiece> pieces_;
  bool ended_ = false;
};

class OrderSolver final : public Solver {
 public:
  std::string_view name() const override { return "order"; }
  std::string_view summary() const override {
    return "reorders ops for least memory without recomputation: list heuristics, then exactly "
           "within small pieces";
  }
  std::span<const OptionSpec> options() const override { return specs(); }
  Traits traits() const override { return {Trait::tight}; }
  Support supports(const Problem& problem) const override {
    if (problem.order == Order::given)
      return Support::no("it changes the order, and the order is given");
    return {};
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    const Graph& graph = problem.graph;
    Search search(problem, context);
    search.take(graph.order());
    for (const auto heuristic : {list_order, reverse_list_order, sethi_ullman_order}) {
      if (context.done()) break;
      search.take(heuristic(graph, context.limits()));
    }
    if (!context.done()) search.solve_pieces();
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_order() { return std::make_unique<OrderSolver>(); }

}  // namespace lowtide::solve::order

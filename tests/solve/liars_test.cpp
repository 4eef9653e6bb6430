// Solvers that break one promise each. Every case here must fail: if one passes, the suite has a
// hole.
#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"

#include "solve/cases.h"
#include "solve/conformance.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

enum class Lie {
  none,
  optimal,         // calls a plan optimal that wastes time
  infeasible,      // says that there is no plan where there is one
  floor,           // a peak that no plan can go below, and some do
  cost,            // a smaller peak than the plan has
  order,           // another order than the given one
  transfers,       // without a machine
  history,         // incumbents that never were
  luck,            // another answer each time
  no_plan,         // the status says feasible, and there is no plan
  overwork,        // beyond its limit of work
  no_count,        // work that it does not count
  no_polls,        // counts once, at the end
  refuses_mutely,  // without a reason
  unfinished,      // says that a limit stopped it where there is none
  finished,        // says that all is done where it has neither a plan nor a proof
};

class Liar final : public solve::Solver {
 public:
  explicit Liar(Lie lie) : lie_(lie) {}
  std::string_view name() const override { return "liar"; }
  std::string_view summary() const override { return "breaks a promise"; }
  solve::Support supports(const Problem&) const override {
    return lie_ == Lie::refuses_mutely ? solve::Support::no("") : solve::Support{};
  }

  Outcome solve(const Problem& problem, solve::Context& context) const override {
    const Graph& graph = problem.graph;
    Plan plan = own_plan(graph);
    if (lie_ == Lie::order) std::swap(plan.steps[0], plan.steps[1]);
    const TensorId first(0);
    if (lie_ == Lie::transfers) {
      plan.machine = Machine{};
      plan.steps.insert(plan.steps.begin() + 1, Step::offload(first));
    }
    const bool twice = lie_ == Lie::optimal || (lie_ == Lie::luck && ++calls_ % 2 == 0);
    if (twice) plan.steps.insert(plan.steps.begin(), {Step::compute(OpId(0)), Step::free(first)});
    context.offer(plan);
    const auto ops = static_cast<std::int64_t>(graph.op_count());
    if (lie_ != Lie::no_count) context.limits().spend(ops);
    if (lie_ == Lie::overwork || lie_ == Lie::no_polls) context.limits().spend(100 * ops);
    if (lie_ == Lie::optimal && context.has_plan())
      context.raise_bound(context.best_cost().duration);
    if (lie_ == Lie::infeasible && !context.has_plan())
      context.raise_floor(problem.budget + Bytes(1));
    if (lie_ == Lie::floor) context.raise_floor(own_peak(graph));
    Outcome outcome = context.finish();
    if (lie_ == Lie::cost) outcome.cost.peak -= Bytes(1);
    if (lie_ == Lie::no_plan) outcome.plan.reset();
    if (lie_ == Lie::history && outcome.plan) outcome.history.push_back(outcome.history.back());
    if (lie_ == Lie::unfinished && outcome.status == Status::unknown)
      outcome.stopped_by = StopReason::deadline;
    if (lie_ == Lie::finished) outcome.stopped_by = StopReason::finished;
    return outcome;
  }

 private:
  Lie lie_;
  mutable int calls_ = 0;
};

solve::SolverTable table_of(Lie lie) {
  solve::SolverTable table;
  table.add(std::make_unique<Liar>(lie));
  return table;
}

// Ops 0 and 1 may change places, and the order decides whether 9 bytes will do without
// recomputation.
Graph crossing() {
  return Sketch({4, 4, 4, 1})
      .op({}, {0}, 5)
      .op({}, {1}, 3)
      .op({1}, {2}, 2)
      .op({2, 0}, {3})
      .keep({3})
      .graph();
}

void examine_liar(Lie lie, Order order = Order::free) {
  const solve::SolverTable table = table_of(lie);
  const Graph graph = crossing();
  const Problem problem{.graph = graph, .budget = Bytes(0), .order = order};
  const auto curve = oracle::all_tradeoffs(graph, order);
  for (std::uint64_t seed = 0; seed < 20; ++seed) examine(table, problem, seed, curve);
}

void limit_liar(Lie lie) {
  const solve::SolverTable table = table_of(lie);
  const Case given = large_cases(2000).front();
  const Problem problem{.graph = given.graph, .budget = Bytes(0)};
  check_work_limits(table, *table.find("liar"), problem);
}

TEST_CASE("liars: the honest one passes") {
  examine_liar(Lie::none);
  limit_liar(Lie::none);
}

#define LIAR_IS_CAUGHT(lie, question) \
  TEST_CASE("liars: " #lie* doctest::should_fail()) { question; }

LIAR_IS_CAUGHT(optimal, examine_liar(Lie::optimal))
LIAR_IS_CAUGHT(infeasible, examine_liar(Lie::infeasible))
LIAR_IS_CAUGHT(floor, examine_liar(Lie::floor))
LIAR_IS_CAUGHT(cost, examine_liar(Lie::cost))
LIAR_IS_CAUGHT(order, examine_liar(Lie::order, Order::given))
LIAR_IS_CAUGHT(transfers, examine_liar(Lie::transfers))
LIAR_IS_CAUGHT(history, examine_liar(Lie::history))
LIAR_IS_CAUGHT(luck, examine_liar(Lie::luck))
LIAR_IS_CAUGHT(no_plan, examine_liar(Lie::no_plan))
LIAR_IS_CAUGHT(refuses_mutely, examine_liar(Lie::refuses_mutely))
LIAR_IS_CAUGHT(unfinished, examine_liar(Lie::unfinished))
LIAR_IS_CAUGHT(finished, examine_liar(Lie::finished))
LIAR_IS_CAUGHT(overwork, limit_liar(Lie::overwork))
LIAR_IS_CAUGHT(no_polls, limit_liar(Lie::no_polls))
LIAR_IS_CAUGHT(no_count, limit_liar(Lie::no_count))

#undef LIAR_IS_CAUGHT

}  // namespace
}  // namespace lowtide

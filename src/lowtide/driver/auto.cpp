// Problem: which solver for this graph and budget?
//
// Idea: all of them, in a portfolio; portfolio.cpp says how. Where the order is free, the problem
// in the graph's own order is a part of it: it has fewer choices, and is sooner good. So whatever a
// run with the given order does before its epochs is done first, with all that it would get there;
// the free order adds to it, and begins its epochs from the best of both.
//
// Invariant: before its epochs a free order has every plan that the given one would have.
//
// Loses: where limits are so tight that they end before the free order has added anything.
#include "lowtide/driver/auto.h"

#include <utility>
#include <vector>

#include "lowtide/driver/portfolio.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::driver {

namespace {

Problem in_given_order(Problem problem) {
  problem.order = Order::given;
  return problem;
}

bool follows_order(const Graph& graph, const Plan& plan) {
  return solve::follows_order(graph, computations(plan));
}

solve::ContextSettings settings_of(const solve::Context& context, const Graph& graph) {
  solve::ContextSettings settings{.limits = context.limits().remaining(),
                                  .seed = context.seed(),
                                  .threads = context.threads(),
                                  .options = {},
                                  .starts = {},
                                  .known = context.own_bound(),
                                  .solvers = context.solvers(),
                                  .watcher = {}};
  for (const Plan& start : context.starts())
    if (follows_order(graph, start)) settings.starts.push_back(start);
  return settings;
}

// Makes starts for a problem whose order is free: first all that would be done for the given order,
// then what a free one adds. Says whether what engines claimed of the given order is still
// believed.
bool begin_in_both(const Problem& problem, solve::Context& context, Portfolio& portfolio) {
  const Problem given = in_given_order(problem);
  solve::Context inner(given, "auto", settings_of(context, problem.graph));
  const auto found = [&](const Plan& plan, std::string_view part) {
    for (const PortfolioPart& asked : inner.parts()) context.part(asked.name);
    context.offer(plan, part);
  };
  for (const Plan& start : inner.starts()) inner.offer(start, "start");
  Portfolio beside(given, inner, found);
  // Limits count what both do.
  beside.prove_briefly();
  beside.construct();
  beside.ask_chain();
  context.limits().spend(inner.limits().work());
  portfolio.take_given(beside);
  portfolio.construct();
  portfolio.ask_chain();
  // Once, and in the given order even beside a plan in another, which may be a poor one.
  inner.limits().spend(context.limits().work() - inner.limits().work());
  const bool possible = !inner.proven_infeasible();
  if (possible) beside.ask_tight();
  for (const PortfolioPart& part : inner.parts()) {
    context.part(part.name).seconds += part.seconds;
    context.part(part.name).work += part.work;
  }
  if (possible) {
    context.limits().spend(inner.limits().work() - context.limits().work());
    portfolio.take_given(beside);
  } else {
    portfolio.ask_tight();
  }
  return inner.engine_believed();
}

class Auto final : public solve::Solver {
 public:
  std::string_view name() const override { return "auto"; }
  std::string_view summary() const override {
    return "the quick ones, then search and bounds, each from the best so far; the default";
  }
  solve::Traits traits() const override {
    return {solve::Trait::portfolio, solve::Trait::transfers};
  }
  solve::Support supports(const Problem& problem) const override {
    return solve::least_time_only(problem);
  }

  Outcome solve(const Problem& problem, solve::Context& context) const override {
    Portfolio portfolio(problem, context);
    bool believed = true;
    if (problem.order == Order::free) {
      believed = begin_in_both(problem, context, portfolio);
    } else {
      portfolio.prove_briefly();
      portfolio.construct();
      portfolio.ask_chain();
      portfolio.ask_tight();
    }
    portfolio.search();
    if (!believed || !context.engine_believed())
      context.set_note(
          "a bound claimed by an engine or a registered solver was above a plan that verifies, and "
          "is left out");
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<solve::Solver> make_auto() { return std::make_unique<Auto>(); }

}  // namespace lowtide::driver

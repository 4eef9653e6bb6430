// Problem: which solver for this graph and budget?
//
// Idea: all of them, in a portfolio; portfolio.cpp says how. Where the order is free, the problem
// in the graph's own order is a part of it: it has fewer choices, and is sooner good. So a run with
// the given order is a part of one with a free order, with the lanes, starts and seeds that it
// would have by itself. Whatever it does before its epochs is done first; the free order adds to
// it. Then both have epochs in turn: those of the given order are whole, those of the free one a
// quarter, until that is ahead; then both get a half, and where it is far ahead it gets all.
//
// Invariant: as long as it is not ahead, a free order has every plan that the given one has with
// some four fifths of the work.
//
// Loses: what the fifth would have brought, where a run in the given order wins at its very end.
#include "lowtide/driver/auto.h"

#include <array>
#include <utility>
#include <vector>

#include "lowtide/driver/portfolio.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::driver {

namespace {

// Of an epoch in the free order, and of one in the given, by how far the former is ahead.
constexpr std::array<int, 3> kFreeQuarters = {1, 2, 4}, kGivenQuarters = {4, 2, 0};

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

// The search of a problem whose order is free, and beside it that of the same problem in the
// graph's own.
class BothOrders {
 public:
  BothOrders(const Problem& problem, solve::Context& context)
      : given_(in_given_order(problem)),
        context_(context),
        inner_(given_, "auto", settings_of(context, problem.graph)),
        beside_(given_, inner_,
                [this](const Plan& plan, std::string_view part) { offer(plan, part); }),
        portfolio_(problem, context) {}

  // First all that would be done for the given order, then what a free one adds; then epochs of
  // both in turn.
  void run() {
    for (const Plan& start : inner_.starts()) inner_.offer(start, "start");
    in_given([&] {
      beside_.prove_briefly();
      beside_.construct();
      beside_.ask_chain();
    });
    portfolio_.take_given(beside_);
    portfolio_.construct();
    portfolio_.ask_chain();
    // Once, and in the given order even beside a plan in another, which may be a poor one.
    if (!inner_.proven_infeasible()) {
      in_given([&] { beside_.ask_tight(); });
      portfolio_.take_given(beside_);
    } else {
      portfolio_.ask_tight();
    }
    search();
    for (const PortfolioPart& part : inner_.parts()) {
      context_.part(part.name).seconds += part.seconds;
      context_.part(part.name).work += part.work;
      if (context_.part(part.name).failure.empty()) context_.part(part.name).failure = part.failure;
    }
  }

  // Says whether what engines claimed of the given order is still believed.
  bool believed() const { return inner_.engine_believed(); }

 private:
  void offer(const Plan& plan, std::string_view part) {
    for (const PortfolioPart& asked : inner_.parts()) context_.part(asked.name);
    context_.offer(plan, part);
  }

  // Limits count what both do.
  template <class Work>
  void in_given(const Work& work) {
    inner_.limits().spend(context_.limits().work() - inner_.limits().work());
    work();
    context_.limits().spend(inner_.limits().work() - context_.limits().work());
  }

  // The free order goes first in the first epoch, which says whether it is worth more, and from
  // then on as long as it is ahead: where limits end within an epoch, what comes last gets little.
  void search() {
    portfolio_.begin_search();
    in_given([&] { beside_.begin_search(); });
    for (bool first = true;; first = false) {
      const bool given_first = !first && portfolio_.lead() == Lead::none;
      if (given_first) given_epoch();
      if (!portfolio_.epoch(given_goes_on_ ? kFreeQuarters[ahead()] : Portfolio::kWhole)) return;
      if (!given_first) given_epoch();
    }
  }

  void given_epoch() {
    if (!given_goes_on_) return;
    in_given([&] { given_goes_on_ = beside_.epoch(kGivenQuarters[ahead()]); });
    portfolio_.hear_from(beside_);
  }

  std::size_t ahead() const { return static_cast<std::size_t>(portfolio_.lead()); }

  const Problem given_;
  solve::Context& context_;
  solve::Context inner_;
  Portfolio beside_, portfolio_;
  bool given_goes_on_ = true;
};

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
    bool believed = true;
    if (problem.order == Order::free) {
      BothOrders both(problem, context);
      both.run();
      believed = both.believed();
    } else {
      Portfolio portfolio(problem, context);
      portfolio.prove_briefly();
      portfolio.construct();
      portfolio.ask_chain();
      portfolio.ask_tight();
      portfolio.search();
    }
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

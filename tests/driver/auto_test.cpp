// The portfolio, with parts of our own of the same traits.
#include "lowtide/driver/auto/auto.h"

#include <initializer_list>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"
#include "lowtide/graph/generate.h"
#include "lowtide/plan/budget.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"

#include "support/by_work.h"
#include "support/part.h"
#include "support/scale.h"

namespace lowtide {
namespace {

using solve::Trait;
using solve::Traits;

TEST_CASE("auto: a subsolver that uses all its limits does not starve the others") {
  // Op 0 is computed twice, so that the plan is not proven optimal.
  const Graph graph = late_reader();
  solve::SolverTable table;
  table.add(std::make_unique<Part>("endless", Traits{Trait::constructive}, std::vector<OpId>()));
  table.add(std::make_unique<Part>("greedy", Traits{Trait::constructive},
                                   std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(driver::make_auto());
  const Problem problem{.graph = graph, .budget = Bytes(30)};
  for (const std::int64_t work : {3'000'000, 30'000'000}) {
    const driver::Answer answer = driver::solve(table, problem, by_work(work));
    CHECK(answer.outcome.found_by == "greedy");
    CHECK(answer.outcome.stopped_by == StopReason::work_limit);
    const auto& parts = answer.outcome.parts;
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].name == "endless");
    CHECK(parts[0].work > work / 2);
    CHECK(parts[0].plans == 0);
    CHECK(parts[1].name == "greedy");
    CHECK(parts[1].plans == 1);
    CHECK(parts[1].won == Ticks(0));
  }
}

TEST_CASE("auto: solvers for tight budgets run only if the constructive ones find no plan") {
  const Graph graph = late_reader();
  const std::vector<OpId> over{OpId(0), OpId(1), OpId(2), OpId(3)};
  const std::vector<OpId> within{OpId(1), OpId(2), OpId(0), OpId(3)};
  for (const bool quick : {false, true}) {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("quick", Traits{Trait::constructive}, quick ? within : over));
    table.add(std::make_unique<Part>("deep", Traits{Trait::tight}, within));
    table.add(driver::make_auto());
    const Problem problem{.graph = graph, .budget = Bytes(21)};
    const driver::Answer answer = driver::solve(table, problem, by_work(3'000'000));
    CHECK(answer.outcome.found_by == (quick ? "quick" : "deep"));
  }
}

TEST_CASE("auto: the gain of each subsolver is reported") {
  const Graph graph = late_reader();
  solve::SolverTable table;
  // Five ticks, then four, which is the bound.
  table.add(std::make_unique<Part>("first", Traits{Trait::constructive},
                                   std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(std::make_unique<Part>("second", Traits{Trait::constructive},
                                   std::vector{OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(driver::make_auto());
  const driver::Answer answer =
      driver::solve(table, {.graph = graph, .budget = Bytes(30)}, by_work(100'000));
  const auto& parts = answer.outcome.parts;
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].plans == 1);
  CHECK(parts[0].won == Ticks(0));
  CHECK(parts[1].name == answer.outcome.found_by);
  CHECK(parts[1].plans == 1);
  CHECK(parts[1].won == Ticks(1));
}

TEST_CASE("auto: a registered solver runs by its traits, and does not run without any") {
  const Graph graph = late_reader();
  const std::vector<OpId> within{OpId(1), OpId(2), OpId(0), OpId(3)};
  for (const Traits traits :
       {Traits{Trait::guest}, Traits{Trait::guest, Trait::external},
        Traits{Trait::guest, Trait::constructive}, Traits{Trait::guest, Trait::anytime}}) {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("guest", traits, within));
    table.add(driver::make_auto());
    const driver::Answer answer =
        driver::solve(table, {.graph = graph, .budget = Bytes(21)}, by_work(100'000));
    CAPTURE(traits.words().size());
    const bool asked = traits.has(Trait::constructive) || traits.has(Trait::anytime);
    CHECK(answer.outcome.plan.has_value() == asked);
  }
}

// With a free order too a solver that takes long does not keep those from their turn that keep the
// given one.
TEST_CASE("auto: with a free order a fast solver for the given order runs") {
  const Graph graph = late_reader();
  const std::vector<OpId> better{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)};
  solve::SolverTable table;
  table.add(std::make_unique<Part>("evict", Traits{Trait::constructive}, std::vector<OpId>()));
  table.add(std::make_unique<Part>("greedy", Traits{Trait::constructive}, better, Order::given));
  table.add(driver::make_auto());
  const driver::Answer answer =
      driver::solve(table, {.graph = graph, .budget = Bytes(30)}, by_work(60'000));
  CHECK(answer.outcome.found_by == "greedy");
}

// Offers its sequence after so many units of work.
class Slow final : public solve::Solver {
 public:
  std::string_view name() const override { return "slow"; }
  std::string_view summary() const override { return "a slow part"; }
  Traits traits() const override { return {Trait::constructive}; }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem&, solve::Context& context) const override {
    for (int unit = 0; unit < 100; ++unit)
      if (context.limits().spend()) return context.finish();
    context.offer_sequence(std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)});
    return context.finish();
  }
};

TEST_CASE("auto: with little work a constructive solver still gets enough for a small graph") {
  const Graph graph = late_reader();
  solve::SolverTable table;
  for (const std::string_view name : {"a", "b", "c", "d"})
    table.add(std::make_unique<Part>(name, Traits{Trait::constructive}, std::vector<OpId>()));
  table.add(std::make_unique<Slow>());
  table.add(driver::make_auto());
  const driver::Answer answer =
      driver::solve(table, {.graph = graph, .budget = Bytes(30)}, by_work(2'000));
  CHECK(answer.outcome.found_by == "slow");
}

// What bounds keep is a plan too, and in the graph's own order it may be the better one.
TEST_CASE("auto: the bounds run first, in the given order if the order is free") {
  const Graph graph = late_reader();
  const std::vector<OpId> kept{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)};
  for (const Order order : {Order::given, Order::free}) {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("endless", Traits{Trait::constructive}, std::vector<OpId>()));
    table.add(std::make_unique<Part>("bounds", Traits{Trait::proving}, kept, Order::given));
    table.add(driver::make_auto());
    const driver::Answer answer = driver::solve(
        table, {.graph = graph, .budget = Bytes(30), .order = order}, by_work(10'000));
    CHECK(answer.outcome.found_by == "bounds");
  }
}

// Writes down the work that it gets, what it is told of the order and with which seed.
struct Granted {
  std::int64_t work;
  std::string orders;
  std::uint64_t seed;
  bool operator==(const Granted&) const = default;
};

// Offers a plan in the given order, or, where it may move computations, a shorter one in another.
class Lane final : public solve::Solver {
 public:
  Lane(std::vector<Granted>& granted, bool reorders) : granted_(granted), reorders_(reorders) {}
  std::string_view name() const override { return "lane"; }
  std::string_view summary() const override { return "a lane"; }
  Traits traits() const override { return {Trait::anytime}; }
  std::span<const solve::OptionSpec> options() const override { return options_of(traits()); }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem&, solve::Context& context) const override {
    const std::string orders(context.options().choice("orders"));
    granted_.push_back({*context.limits().settings().work, orders, context.seed()});
    // Not proven optimal, so that epochs go on.
    context.offer_sequence(std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)});
    if (reorders_ && orders == "on")
      context.offer_sequence(std::vector{OpId(1), OpId(2), OpId(0), OpId(3)});
    while (!context.limits().spend()) {
    }
    return context.finish();
  }

 private:
  std::vector<Granted>& granted_;
  bool reorders_;
};

std::vector<Granted> granted_lanes(std::int64_t work, Order order, bool reorders = false) {
  const Graph graph = late_reader();
  std::vector<Granted> granted;
  solve::SolverTable table;
  table.add(std::make_unique<Part>("first", Traits{Trait::constructive},
                                   std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(std::make_unique<Lane>(granted, reorders));
  table.add(driver::make_auto());
  driver::solve(table, {.graph = graph, .budget = Bytes(21), .order = order}, by_work(work));
  return granted;
}

TEST_CASE("auto: a run with less work is a prefix of one with more") {
  const std::vector<Granted> more = granted_lanes(1'000'000, Order::given);
  for (const std::int64_t work : {100'000, 250'000, 400'000, 900'000}) {
    const std::vector<Granted> less = granted_lanes(work, Order::given);
    REQUIRE(less.size() > 1);
    REQUIRE(less.size() <= more.size());
    for (std::size_t i = 0; i + 1 < less.size(); ++i) CHECK(less[i] == more[i]);
    CHECK(less.back().work <= more[less.size() - 1].work);
  }
}

TEST_CASE("auto: with a free order most lanes keep the given order while it wins as much") {
  std::int64_t keep = 0, all = 0;
  for (const Granted& lane : granted_lanes(4'000'000, Order::free)) {
    all += lane.work;
    if (lane.orders == "off") keep += lane.work;
  }
  CHECK(10 * keep > 6 * all);
  CHECK(keep < all);
}

TEST_CASE("auto: the dynamic program over chains runs on chains only") {
  for (const std::string_view kind : {"chain", "unet"}) {
    const Graph graph = generate(kind, 60, 1);
    std::vector<OpId> once(graph.order().begin(), graph.order().end());
    solve::SolverTable table;
    table.add(std::make_unique<Part>("blocks", Traits{Trait::blocks}, once));
    table.add(driver::make_auto());
    for (const Order order : {Order::given, Order::free}) {
      const driver::Answer answer = driver::solve(
          table, {.graph = graph, .budget = own_peak(graph), .order = order}, by_work(10'000));
      CHECK((answer.outcome.found_by == "blocks") == (kind == "chain"));
    }
  }
}

// With the search alone it was 29.06 %.
TEST_CASE("auto: on a chain little work suffices near the smallest budget") {
  const Graph graph = generate("chain", 200, 4);
  const Problem problem{.graph = graph,
                        .budget = resolve_budget(parse_budget("act:20%"), graph),
                        .order = Order::given};
  const driver::Answer answer = driver::solve(driver::all_solvers(), problem, by_work(200'000));
  REQUIRE(answer.outcome.plan.has_value());
  CHECK(answer.outcome.cost.duration.count() * 1000 < graph.total_time().count() * 1276);
}

// Whether `auto` loses less than `most` per cent on a layered graph at a share of its peak.
void check_layered(std::size_t ops, std::uint64_t graph_seed, std::int64_t percent,
                   std::int64_t work, std::initializer_list<std::uint64_t> seeds, double most) {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("layered", ops, graph_seed);
  const Problem problem{.graph = graph,
                        .budget = Bytes(own_peak(graph).count() * percent / 100),
                        .order = Order::given};
  for (const std::uint64_t seed : seeds) {
    if (kSanitized && seed != 1) continue;
    CAPTURE(seed);
    driver::Request request = by_work(work);
    request.seed = seed;
    const driver::Answer answer = driver::solve(table, problem, request);
    REQUIRE(answer.outcome.plan.has_value());
    CHECK(overhead_percent(answer.outcome.cost.duration, graph.total_time()) < most);
  }
}

// Without such a lane 12.01 and 11.88.
TEST_CASE("auto: some long lanes forget their start plan") {
  check_layered(150, 17, 70, 800'000, {1, 3}, 11.7);
}

// With one hot lane in four, which begins at one mean op time, 6.85 and 6.50.
TEST_CASE("auto: lanes are hot if the best plan is far from the bound") {
  check_layered(1000, 61, 75, 1'000'000, {1, 4}, 6.4);
}

}  // namespace
}  // namespace lowtide

// The portfolio on several threads: what they change (nothing without a clock), and what leaves
// them.
#include <tuple>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/auto.h"
#include "lowtide/driver/driver.h"
#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/search/search.h"

#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"

namespace lowtide {
namespace {

void check_same(const driver::Answer& a, const driver::Answer& b) {
  REQUIRE(a.outcome.plan.has_value() == b.outcome.plan.has_value());
  if (a.outcome.plan) CHECK(a.outcome.plan->steps == b.outcome.plan->steps);
  CHECK(a.outcome.status == b.outcome.status);
  CHECK(a.outcome.stopped_by == b.outcome.stopped_by);
  CHECK(a.outcome.smallest_peak == b.outcome.smallest_peak);
  CHECK(a.outcome.bound.duration == b.outcome.bound.duration);
  CHECK(a.outcome.bound.peak == b.outcome.bound.peak);
  CHECK(a.outcome.found_by == b.outcome.found_by);
  CHECK(a.work == b.work);
  REQUIRE(a.outcome.parts.size() == b.outcome.parts.size());
  for (std::size_t i = 0; i < a.outcome.parts.size(); ++i) {
    const PortfolioPart &one = a.outcome.parts[i], &other = b.outcome.parts[i];
    CHECK(std::tie(one.name, one.work, one.plans, one.won, one.bound) ==
          std::tie(other.name, other.work, other.plans, other.won, other.bound));
  }
}

Bytes share(const Graph& graph, std::int64_t percent) {
  return Bytes(own_peak(graph).count() / 100 * percent);
}

TEST_CASE("auto: the same steps for any number of threads under a limit of work") {
  const solve::SolverTable table = driver::all_solvers();
  for (const std::string_view kind : {"transformer", "unet", "layered"}) {
    if (kSanitized && kind == "unet") continue;
    CAPTURE(kind);
    const Graph graph = generate(kind, 300, 1);
    for (const Order order : {Order::free, Order::given}) {
      const Problem problem{.graph = graph, .budget = share(graph, 55), .order = order};
      driver::Request request;
      request.limits.work = sanitized(40'000, 300'000);
      const driver::Answer one = driver::solve(table, problem, request);
      CHECK(one.work >= *request.limits.work);
      for (const int threads : {4, 7}) {
        if (kSanitized && threads != 4) continue;  // races show with any number
        CAPTURE(threads);
        request.threads = threads;
        check_same(one, driver::solve(table, problem, request));
      }
    }
  }
}

TEST_CASE("auto: ends without any limit, and alike for any number of threads") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("transformer", 60, 1);
  const Problem problem{.graph = graph, .budget = share(graph, 80)};
  driver::Request request;
  const driver::Answer one = driver::solve(table, problem, request);
  CHECK(one.outcome.stopped_by == StopReason::finished);
  CHECK(one.outcome.plan.has_value());
  request.threads = 3;
  check_same(one, driver::solve(table, problem, request));
}

TEST_CASE("auto: under a clock the first answer comes early and the best is kept to the end") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("transformer", 2000, 1);
  const Problem problem{.graph = graph, .budget = share(graph, 55)};
  driver::Request request;
  request.limits.seconds = 2;
  request.threads = 4;
  double first = -1;
  Ticks best = Ticks::max();
  request.watcher = [&](const solve::Progress& progress) {
    if (progress.plan == nullptr) return;
    if (first < 0) first = progress.seconds;
    CHECK(progress.cost.duration <= best);
    best = progress.cost.duration;
  };
  const driver::Answer answer = driver::solve(table, problem, request);
  REQUIRE(answer.outcome.plan);
  CHECK(answer.outcome.cost.duration == best);
  CHECK(first >= 0);
  CHECK(first < 1);
}

class Failing final : public solve::Solver {
 public:
  std::string_view name() const override { return "search"; }
  std::string_view summary() const override { return "breaks"; }
  std::span<const solve::OptionSpec> options() const override { return real_->options(); }
  solve::Traits traits() const override { return real_->traits(); }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem&, solve::Context&) const override { throw InternalError("broken"); }

 private:
  std::unique_ptr<solve::Solver> real_ = solve::search::make_search();
};

TEST_CASE("auto: what a part throws on a thread of its own reaches the caller") {
  solve::SolverTable table;
  table.add(std::make_unique<Failing>());
  table.add(driver::make_auto());
  const Graph graph = generate("transformer", 100, 1);
  const Problem problem{.graph = graph, .budget = share(graph, 80)};
  for (const int threads : {1, 4}) {
    driver::Request request;
    request.threads = threads;
    request.limits.work = 1000;
    CHECK_THROWS_AS(driver::solve(table, problem, request), InternalError);
  }
}

TEST_CASE("auto: a watcher that throws ends the run") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("transformer", 300, 1);
  const Problem problem{.graph = graph, .budget = share(graph, 55)};
  for (const double after : {0.0, 0.1}) {
    driver::Request request;
    request.threads = 3;
    request.limits.seconds = 5;
    request.watcher = [&](const solve::Progress& progress) {
      if (progress.seconds >= after) throw InputError("watcher", "enough");
    };
    CHECK_THROWS_AS(driver::solve(table, problem, request), InputError);
  }
}

TEST_CASE("auto: starts in another order, of another graph or beyond the budget do no harm") {
  const solve::SolverTable table = driver::all_solvers();
  for (int i = 0; i < samples(60); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    RandomGraphSettings settings;
    settings.ops = 3 + random.below(20);
    const Graph graph = random_graph(random, settings), other = random_graph(random, settings);
    driver::Request request;
    request.threads = 2;
    request.limits.work = 20'000;
    request.starts = {random_plan(random, graph, {.transfers = false}),
                      random_plan(random, other, {.transfers = false}),
                      random_plan(random, graph, {.transfers = true})};
    random.shuffle(request.starts);
    for (const Order order : {Order::given, Order::free})
      for (const auto& solver : table.all()) {
        CAPTURE(solver->name());
        request.solver = solver->name();
        const Problem problem{.graph = graph, .budget = own_peak(graph), .order = order};
        CHECK_NOTHROW(driver::solve(table, problem, request));
      }
  }
}

}  // namespace
}  // namespace lowtide

// The portfolio on several threads: what they change (nothing without a clock), and what leaves
// them.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/driver.h"
#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"
#include "lowtide/solve/interface/forwarding.h"

#include "support/by_work.h"
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
      driver::Request request = by_work(sanitized(40'000, 300'000));
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

TEST_CASE("auto: ends without any limit, with the same plan for any number of threads") {
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

TEST_CASE("auto: with a time limit the first plan comes early and the best is kept") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("transformer", 2000, 1);
  const Problem problem{.graph = graph, .budget = share(graph, 55)};
  // The run ends after these plans, which take far less than the time limit on any machine.
  constexpr int kPlans = 3;
  CancelToken enough;
  driver::Request request;
  request.limits = {.seconds = 60, .cancel = &enough};
  request.threads = 4;
  std::int64_t first = -1;
  int plans = 0;
  Ticks best = Ticks::max();
  request.watcher = [&](const solve::Progress& progress) {
    if (progress.plan == nullptr) return;
    if (first < 0) first = progress.work;
    CHECK(progress.cost.duration <= best);
    best = progress.cost.duration;
    if (++plans == kPlans) enough.cancel();
  };
  const driver::Answer answer = driver::solve(table, problem, request);
  REQUIRE(answer.outcome.plan);
  CHECK(answer.outcome.cost.duration == best);
  CHECK(first >= 0);
  CHECK(first < 100 * static_cast<std::int64_t>(graph.op_count()));
}

// Stands in for a part; throws at once, or once it has offered the graph's own plan.
class Failing final : public solve::Forwarding {
 public:
  Failing(const solve::Solver& to, bool late, bool fault)
      : Forwarding(to), late_(late), fault_(fault) {}
  Outcome solve(const Problem& problem, solve::Context& context) const override {
    if (late_) context.offer_events(own_events(problem.graph));
    if (fault_) throw InternalError("its invariant does not hold");
    throw std::runtime_error("Traceback:\n  line 1\nit cannot go on\n");
  }

 private:
  bool late_, fault_;
};

// Asks `auto` where the parts of these names throw.
driver::Answer ask_with_failing(const std::vector<std::string_view>& names, bool late,
                                const Problem& problem, const driver::Request& request,
                                bool fault = false) {
  const solve::SolverTable real = driver::all_solvers();
  solve::SolverTable table = driver::all_solvers();
  for (const std::string_view name : names)
    table.replace(std::make_unique<Failing>(*real.find(name), late, fault));
  return driver::solve(table, problem, request);
}

TEST_CASE("auto: a subsolver that throws is reported, and the others go on") {
  const Graph graph = generate("transformer", 100, 1);
  const Problem problem{.graph = graph, .budget = share(graph, 80)};
  const solve::SolverTable table = driver::all_solvers();
  for (const auto& solver : table.all()) {
    if (solver->name() == "auto") continue;
    CAPTURE(solver->name());
    for (const bool timed : {false, true}) {
      CAPTURE(timed);
      driver::Request request;
      request.threads = timed ? 4 : 1;
      request.limits.work = sanitized(10'000, 50'000);
      if (timed) request.limits.seconds = 100;
      const driver::Answer answer = ask_with_failing({solver->name()}, false, problem, request);
      REQUIRE(answer.outcome.plan);
      CHECK(verify(problem, *answer.outcome.plan).ok);
      const std::string said = std::string(solver->name()) + " failed";
      const auto part =
          std::ranges::find(answer.outcome.parts, solver->name(), &PortfolioPart::name);
      const bool asked = part != answer.outcome.parts.end();
      CHECK((answer.outcome.note.find(said) != std::string::npos) == asked);
      if (asked) CHECK(part->failure == "it cannot go on");
    }
  }
}

TEST_CASE("auto: if every subsolver throws, their plans so far count") {
  const Graph graph = generate("transformer", 100, 1);
  std::vector<std::string_view> names;
  const solve::SolverTable table = driver::all_solvers();
  for (const auto& solver : table.all())
    if (solver->name() != "auto") names.push_back(solver->name());
  driver::Request request = by_work(50'000);
  for (const Order order : {Order::given, Order::free})
    for (const bool late : {false, true}) {
      const Problem problem{.graph = graph, .budget = own_peak(graph), .order = order};
      const driver::Answer answer = ask_with_failing(names, late, problem, request);
      CHECK(answer.outcome.plan.has_value());
      // Where nobody has found anything it is the given order as it is.
      CHECK((answer.outcome.found_by == "auto") == !late);
      CHECK(answer.outcome.note.find("bounds failed") != std::string::npos);
      CHECK(by_itself(answer.outcome.stopped_by));
    }
}

TEST_CASE("auto: a broken invariant ends the run in checked builds only") {
  const Graph graph = generate("transformer", 100, 1);
  const Problem problem{.graph = graph, .budget = share(graph, 80)};
  for (const int threads : {1, 4}) {
    driver::Request request;
    request.threads = threads;
    request.limits.work = 10'000;
    const auto ask = [&] { return ask_with_failing({"bounds"}, false, problem, request, true); };
    if (kDebugChecks)
      CHECK_THROWS_AS(ask(), InternalError);
    else
      CHECK(ask().outcome.note.find("its invariant") != std::string::npos);
  }
}

TEST_CASE("auto: a watcher that throws ends the run") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("transformer", 300, 1);
  const Problem problem{.graph = graph, .budget = share(graph, 55)};
  for (const int most : {1, 2}) {
    driver::Request request;
    request.threads = 3;
    request.limits.seconds = 100;
    int told = 0;
    request.watcher = [&](const solve::Progress&) {
      if (++told >= most) throw InputError("watcher", "enough");
    };
    CHECK_THROWS_AS(driver::solve(table, problem, request), InputError);
  }
}

TEST_CASE("auto: invalid start plans do no harm") {
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

// The trade-off curve: against brute force, whatever the number of threads, with solvers that fail.
#include "lowtide/driver/curve.h"

#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "oracles/brute_force.h"
#include "support/network.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

driver::CurveRequest request_for(const Graph& graph, std::int64_t work = sanitized(50'000, 500'000),
                                 int threads = 2) {
  driver::CurveRequest request;
  const Bytes peak = own_peak(graph);
  request.from = Bytes(peak.count() / 5);
  request.to = peak;
  request.settings.limits.work = work;
  request.settings.threads = threads;
  return request;
}

void check_point(const Graph& graph, Order order, const TradeoffPoint& point) {
  const Outcome& outcome = point.outcome;
  CAPTURE(point.budget.count());
  const bool planned = outcome.status == Status::optimal || outcome.status == Status::feasible;
  REQUIRE(outcome.plan.has_value() == planned);
  if (!planned) return;
  const Verdict verdict =
      verify({.graph = graph, .budget = point.budget, .order = order}, *outcome.plan);
  CHECK(verdict.ok);
  CHECK(verdict.cost == outcome.cost);
  CHECK(outcome.bound.duration <= outcome.cost.duration);
  CHECK((outcome.status == Status::optimal) == (outcome.bound.duration == outcome.cost.duration));
}

void check_curve(const Graph& graph, const Tradeoff& curve) {
  const TradeoffPoint* smaller = nullptr;
  for (const TradeoffPoint& point : curve.points) {
    check_point(graph, curve.terms.order, point);
    if (smaller != nullptr) {
      CHECK(smaller->budget < point.budget);
      CHECK(smaller->outcome.bound.duration >= point.outcome.bound.duration);
      if (smaller->outcome.plan) {
        REQUIRE(point.outcome.plan.has_value());
        CHECK(smaller->outcome.cost.duration >= point.outcome.cost.duration);
      }
    }
    CHECK((point.outcome.status == Status::infeasible) == (point.budget < curve.floor));
    smaller = &point;
  }
  REQUIRE(curve.smallest.has_value());
  check_point(graph, curve.terms.order, *curve.smallest);
  CHECK(curve.smallest->budget >= curve.floor);
  CHECK(curve.smallest->budget == curve.smallest->outcome.cost.peak);
}

bool same(const TradeoffPoint& a, const TradeoffPoint& b) {
  const auto steps = [](const Outcome& outcome) {
    return outcome.plan ? outcome.plan->steps : std::vector<Step>();
  };
  return a.budget == b.budget && a.outcome.status == b.outcome.status &&
         a.outcome.cost == b.outcome.cost && a.outcome.bound.duration == b.outcome.bound.duration &&
         steps(a.outcome) == steps(b.outcome);
}

TEST_CASE("curve: small graphs against brute force") {
  const solve::SolverTable table = driver::all_solvers();
  for (int i = 0; i < samples(20, 30); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random, {.ops = 5 + random.below(2), .reads = 2});
    driver::CurveRequest request = request_for(graph);
    request.terms.order = random.chance(0.5) ? Order::given : Order::free;
    request.from = Bytes(0);
    request.points = 6;
    const Tradeoff found = driver::curve(table, graph, request);
    check_curve(graph, found);
    const auto best = oracle::all_tradeoffs(graph, request.terms.order);
    CHECK(found.floor <= best.back().peak);
    CHECK(found.smallest->budget >= best.back().peak);
    for (const TradeoffPoint& point : found.points) {
      const auto least = oracle::least_duration(best, point.budget);
      if (point.outcome.plan) CHECK(point.outcome.cost.duration >= *least);
      if (point.outcome.status == Status::infeasible) CHECK_FALSE(least.has_value());
      if (least) CHECK(point.outcome.bound.duration <= *least);
    }
  }
}

TEST_CASE("curve: without a time limit threads change nothing") {
  const solve::SolverTable table = driver::all_solvers();
  const std::int64_t work = sanitized(60'000, 1'000'000);
  for (std::string_view kind : {"transformer", "unet"}) {
    const Graph graph = generate(kind, 120, 1);
    const Tradeoff alone = driver::curve(table, graph, request_for(graph, work, 1));
    const Tradeoff three = driver::curve(table, graph, request_for(graph, work, 3));
    check_curve(graph, alone);
    REQUIRE(alone.points.size() == three.points.size());
    for (std::size_t i = 0; i < alone.points.size(); ++i)
      CHECK(same(alone.points[i], three.points[i]));
    CHECK(same(*alone.smallest, *three.smallest));
    CHECK(alone.floor == three.floor);
  }
}

TEST_CASE("curve: within one per cent of a run of its own with the same work for each point") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("resnet", 150, 2);
  const std::int64_t work = sanitized(30'000, 300'000);
  driver::CurveRequest request = request_for(graph, 10 * work);
  request.points = 5;
  for (const TradeoffPoint& point : driver::curve(table, graph, request).points) {
    driver::Request own;
    own.limits.work = work;
    const Problem problem{.graph = graph, .budget = point.budget};
    const Outcome outcome = driver::solve(table, problem, own).outcome;
    if (!outcome.plan) continue;
    REQUIRE(point.outcome.plan.has_value());
    const Ticks slack(graph.total_time().count() / 100);
    if (kSanitized) continue;  // a tenth of the work says little
    CHECK(point.outcome.cost.duration <= outcome.cost.duration + slack);
  }
}

TEST_CASE("curve: cancelled before and while it runs") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("resnet", 3000, 1);
  for (const int wait_ms : {0, 30}) {
    CancelToken token;
    driver::CurveRequest request = request_for(graph);
    request.settings.limits = {.seconds = 60, .cancel = &token};
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      token.cancel();
    });
    if (wait_ms == 0) other.join();
    const Tradeoff found = driver::curve(table, graph, request);
    if (other.joinable()) other.join();
    check_curve(graph, found);
    CHECK(found.stopped_by == StopReason::cancelled);
    CHECK(found.points.back().outcome.plan.has_value());
  }
}

TEST_CASE("curve: without time the unplanned step is the plan") {
  const Graph graph = generate("chain", 50, 1);
  driver::CurveRequest request = request_for(graph);
  request.settings.limits = {.seconds = 0};
  const Tradeoff found = driver::curve(driver::all_solvers(), graph, request);
  check_curve(graph, found);
  CHECK(found.points.back().outcome.status == Status::optimal);
  CHECK(found.points.back().outcome.found_by == "given");
}

TEST_CASE("curve: ranges of few budgets") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("chain", 20, 1);
  driver::CurveRequest request = request_for(graph);
  request.from = request.to;
  CHECK(driver::curve(table, graph, request).points.size() == 1);
  request.from = request.to - Bytes(1);
  CHECK(driver::curve(table, graph, request).points.size() == 2);
  request.from = request.to = Bytes(1);
  const Tradeoff none = driver::curve(table, graph, request);
  CHECK(none.points.at(0).outcome.status == Status::infeasible);
  check_curve(graph, none);
}

TEST_CASE("curve: invalid requests are refused") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("chain", 20, 1);
  driver::CurveRequest request = request_for(graph);
  request.points = 1;
  CHECK_THROWS_AS(driver::curve(table, graph, request), InputError);
  request = request_for(graph);
  request.from = request.to + Bytes(1);
  CHECK_THROWS_AS(driver::curve(table, graph, request), InputError);
  request.from = Bytes(-1);
  CHECK_THROWS_AS(driver::curve(table, graph, request), InputError);
  request = request_for(graph);
  request.settings.solver = "magic";
  CHECK_THROWS_AS(driver::curve(table, graph, request), InputError);
}

// Fails below half of the baseline peak; claims too much below three quarters.
class Faulty final : public solve::Solver {
 public:
  explicit Faulty(Bytes peak) : peak_(peak) {}
  std::string_view name() const override { return "faulty"; }
  std::string_view summary() const override { return "fails"; }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem& problem, solve::Context& context) const override {
    if (problem.budget.count() < peak_.count() / 2) throw InternalError("it broke");
    for (const Plan& start : context.starts()) context.offer(start);
    if (problem.budget.count() < peak_.count() / 4 * 3) context.raise_floor(Bytes::max());
    return context.finish();
  }

 private:
  Bytes peak_;
};

TEST_CASE("curve: a solver that fails or lies at one budget spoils no other") {
  const Graph graph = generate("resnet", 60, 1);
  solve::SolverTable table = driver::all_solvers();
  table.add(std::make_unique<Faulty>(own_peak(graph)));
  driver::CurveRequest request = request_for(graph);
  request.settings.solver = "faulty";
  const Tradeoff found = driver::curve(table, graph, request);
  check_curve(graph, found);
  int broken = 0;
  for (const TradeoffPoint& point : found.points)
    broken += point.outcome.note.find("broke") != std::string::npos ? 1 : 0;
  CHECK(broken > 0);
  CHECK(found.points.back().outcome.status == Status::optimal);
  CHECK(found.smallest->budget == own_peak(graph));
}

// Finds nothing but one plan, and that only where it is over the budget.
class Beyond final : public solve::Solver {
 public:
  explicit Beyond(Plan plan, Bytes peak) : plan_(std::move(plan)), peak_(peak) {}
  std::string_view name() const override { return "beyond"; }
  std::string_view summary() const override { return "one plan"; }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem& problem, solve::Context& context) const override {
    if (problem.budget < peak_) context.offer(plan_);
    return context.finish();
  }

 private:
  Plan plan_;
  Bytes peak_;
};

TEST_CASE("curve: a plan over its budget counts for larger budgets") {
  const Graph graph = generate("resnet", 60, 1);
  solve::SolverTable table = driver::all_solvers();
  driver::Request own;
  own.limits.work = 100'000;
  const Bytes budget(own_peak(graph).count() * 7 / 10);
  const Outcome lean = driver::solve(table, {.graph = graph, .budget = budget}, own).outcome;
  REQUIRE(lean.plan.has_value());
  table.add(std::make_unique<Beyond>(*lean.plan, lean.cost.peak));
  driver::CurveRequest request = request_for(graph);
  request.settings.solver = "beyond";
  const Tradeoff found = driver::curve(table, graph, request);
  check_curve(graph, found);
  CHECK(found.smallest->budget == lean.cost.peak);
  for (const TradeoffPoint& point : found.points)
    CHECK(point.outcome.plan.has_value() == (point.budget >= lean.cost.peak));
}

// Stands for a solver of that name: counts its calls and uses its work up.
class Counting final : public solve::Solver {
 public:
  Counting(std::string_view name, int& calls, bool takes = true)
      : name_(name), calls_(calls), takes_(takes) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "counts"; }
  std::span<const solve::OptionSpec> options() const override {
    return driver::all_solvers().find(name_)->options();
  }
  solve::Traits traits() const override { return driver::all_solvers().find(name_)->traits(); }
  solve::Support supports(const Problem&) const override {
    return takes_ ? solve::Support{} : solve::Support::no("no");
  }
  Outcome solve(const Problem&, solve::Context& context) const override {
    ++calls_;
    while (!context.limits().spend(100)) {
    }
    return context.finish();
  }

 private:
  std::string_view name_;
  int& calls_;
  bool takes_;
};

TEST_CASE(
    "curve: after the first pass the search and the bounds replace `auto`, if they support the "
    "graph") {
  const Graph graph = generate("resnet", 60, 1);
  driver::CurveRequest request = request_for(graph, 2'000'000, 1);
  request.points = 4;
  for (const bool takes : {true, false}) {
    int whole = 0, search = 0, bounds = 0;
    solve::SolverTable table;
    table.add(std::make_unique<Counting>("auto", whole));
    table.add(std::make_unique<Counting>("search", search, takes));
    table.add(std::make_unique<Counting>("bounds", bounds));
    const Tradeoff found = driver::curve(table, graph, request);
    check_curve(graph, found);
    CAPTURE(takes);
    int open = 0;
    for (const TradeoffPoint& point : found.points)
      open += point.outcome.status == Status::unknown ? 1 : 0;
    REQUIRE(open > 0);
    const int probes = 16;
    if (takes) {
      CHECK(whole == open + probes);
      CHECK(search >= 3 * open);
      CHECK(bounds == 2 * open);
    } else {
      CHECK(whole > open + probes);
      CHECK(search + bounds == 0);
    }
  }
}

TEST_CASE("curve: substitutions are applied as by plan") {
  const Graph graph = three_products();
  const solve::SolverTable table = driver::all_solvers();
  driver::CurveRequest request = request_for(graph, 200'000);
  request.to = Bytes(2 * own_peak(graph).count());  // what is merged is there at once
  for (const bool allowed : {false, true}) {
    CAPTURE(allowed);
    request.terms.techniques = parse_techniques(allowed ? "default,substitute" : "default", false);
    const Tradeoff curve = driver::curve(table, graph, request);
    const Question question = question_on(graph, request.to, request.terms);
    const Outcome& found = curve.points.back().outcome;
    REQUIRE(found.plan);
    CHECK(verify(question, *found.plan).ok);
    CHECK((found.cost.duration < graph.total_time()) == allowed);
    driver::Request as_plan;
    as_plan.limits.work = 200'000;
    CHECK(found.cost.duration <= driver::solve(table, question, as_plan).outcome.cost.duration);
  }
}

}  // namespace
}  // namespace lowtide

// Moccasin's model against brute force over the same model: at most C computations of an op, in the
// stages of an order or anywhere.
#include "lowtide/solve/exact/moccasin/moccasin.h"

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"
#include "lowtide/engines/find.h"
#include "lowtide/graph/builder.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/exact/moccasin/events.h"

#include "oracles/brute_force.h"
#include "solve/fake_engine.h"
#include "solve/run_solver.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

#define NEED_CPSAT()                                                        \
  if (const auto engine = engines::find_engine(engines::EngineKind::cpsat); \
      !engine.missing.empty()) {                                            \
    MESSAGE("left out: it needs ", engine.missing);                         \
    return;                                                                 \
  }

// Every sequence that computes no op more than `most` times, of each, by depth first: the least
// duration within the budget.
class Capped {
 public:
  Capped(const Problem& problem, std::vector<int> most)
      : problem_(problem), graph_(problem.graph), most_(std::move(most)) {}

  std::optional<Ticks> least() {
    left_ = graph_.op_count();
    times_.assign(graph_.op_count(), 0);
    go(Ticks());
    return best_;
  }

 private:
  void go(Ticks spent) {
    if (best_ && spent >= *best_) return;
    if (left_ == 0) {
      const Timeline timeline = simulate(graph_, plan_from_sequence(graph_, sequence_));
      if (!timeline.violation && timeline.cost.peak <= problem_.budget) best_ = spent;
      // An output may have to be made again after all else.
    }
    for (std::size_t i = 0; i < graph_.op_count(); ++i) {
      const OpId op(i);
      if (times_[i] == most_[i] || (times_[i] > 0 && !graph_.recomputable(op))) continue;
      if (!sequence_.empty() && sequence_.back() == op) continue;
      bool ready = true;
      for (const OpId before : graph_.predecessors(op)) ready &= times_[before.index()] > 0;
      if (!ready) continue;
      if (times_[i]++ == 0) --left_;
      sequence_.push_back(op);
      go(spent + graph_.time(op));
      sequence_.pop_back();
      if (--times_[i] == 0) ++left_;
    }
  }

  const Problem& problem_;
  const Graph& graph_;
  std::vector<int> most_;
  std::size_t left_ = 0;
  std::vector<int> times_;
  std::vector<OpId> sequence_;
  std::optional<Ticks> best_;
};

TEST_CASE("moccasin: free events find the best plan of at most C_v computations of each op") {
  NEED_CPSAT()
  const auto solver = solve::exact::moccasin::make_moccasin();
  int told = 0, apart = 0;
  for (int i = 0; i < 200 && told < (kSanitized ? 3 : 24); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random, RandomGraphSettings::plain(5));
    Problem problem{.graph = graph, .budget = own_peak(graph)};
    const auto curve = oracle::all_tradeoffs(graph, Order::free);
    if (curve.size() < 2) continue;
    problem.budget = curve[1 + static_cast<std::size_t>(i) % (curve.size() - 1)].peak;
    ++told;
    // For all ops, and each other time for one in two apart.
    std::vector<int> most(graph.op_count(), 2);
    std::string options = "events=free";
    if (told % 2 == 0) {
      options += " intervals=1";
      for (std::size_t op = 0; op < most.size(); ++op) {
        most[op] = op % 2 == static_cast<std::size_t>(told / 2 % 2) ? 3 : 1;
        if (most[op] == 3) options += " intervals=#" + std::to_string(op) + ":3";
      }
    }
    const auto truth = Capped(problem, most).least();
    apart += told % 2 == 0 && truth != Capped(problem, std::vector<int>(most.size(), 1)).least();
    const Outcome outcome = run_solver(*solver, problem, options);
    CHECK(outcome.note == "");
    REQUIRE(outcome.model);
    CHECK(outcome.model->infeasible == !truth);
    if (!truth) continue;
    REQUIRE(outcome.plan);
    CHECK(outcome.cost.duration == *truth);
    CHECK(outcome.model->optimal);
    CHECK(outcome.model->bound == *truth);
  }
  CHECK(told > 0);
  CHECK((kSanitized || apart > 0));
}

TEST_CASE("moccasin: both encodings of (5) and both sets of lengths agree") {
  NEED_CPSAT()
  const auto solver = solve::exact::moccasin::make_moccasin();
  int told = 0;
  for (int i = 0; i < 60 && told < (kSanitized ? 2 : 8); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(1000 + i));
    const Graph graph = random_graph(random, {.ops = 7, .in_place = 0});  // not in the model
    const auto curve = oracle::all_tradeoffs(graph, Order::given);
    if (curve.size() < 2) continue;
    const Problem problem{.graph = graph, .budget = curve[1].peak, .order = Order::given};
    ++told;
    for (const char* events : {"staged", "free"}) {
      CAPTURE(events);
      const std::string base = std::string("events=") + events;
      const Outcome literals = run_solver(*solver, problem, base + " precedence=literals");
      const Outcome reservoir = run_solver(*solver, problem, base + " precedence=reservoir");
      CHECK(literals.note + reservoir.note == "");
      CHECK(literals.plan.has_value() == reservoir.plan.has_value());
      if (literals.plan) CHECK(literals.cost.duration == reservoir.cost.duration);
      CHECK(literals.cost.duration >= oracle::least_duration(curve, problem.budget).value());
      const Outcome log = run_solver(*solver, problem, base + " lengths=log");
      if (log.plan && literals.plan) CHECK(log.cost.duration >= literals.cost.duration);
    }
  }
  CHECK(told > 0);
}

TEST_CASE("moccasin: the paper's example recomputes its first node") {
  NEED_CPSAT()
  // Figure 2: 1 -> 2 -> 3 -> 4 and 1 -> 4. Unit sizes; a budget of three needs nothing again; with
  // the chain longer, node 1 is dropped and made again.
  GraphBuilder builder;
  std::vector<TensorId> made;
  const auto add = [&](const std::vector<TensorId>& reads, std::int64_t bytes) {
    Op op;
    op.time = Ticks(1);
    Tensor tensor;
    tensor.bytes = Bytes(bytes);
    made.push_back(builder.add_tensor(tensor));
    builder.add_op(op, reads, {made.back()});
  };
  add({}, 2);
  add({made[0]}, 1);
  add({made[1]}, 3);
  add({made[2]}, 1);
  add({made[3], made[0]}, 1);
  builder.add_output(made[4]);
  const Graph graph = builder.build();
  const Problem problem{.graph = graph, .budget = Bytes(4), .order = Order::given};
  REQUIRE(own_peak(graph) > Bytes(4));
  const Outcome outcome = run_solver(*solve::exact::moccasin::make_moccasin(), problem);
  CHECK(computes(outcome) == "0 1 2 3 0 4");
  REQUIRE(outcome.model);
  CHECK(outcome.model->optimal);
  // One computation more is the least there can be, but the model proves nothing of the problem.
  CHECK(outcome.status == Status::feasible);
}

TEST_CASE(
    "moccasin: one interval for each op means no recomputation, and a start plan raises C_v") {
  NEED_CPSAT()
  const auto solver = solve::exact::moccasin::make_moccasin();
  for (int i = 0; i < 30; ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const Graph other = random_graph(random, RandomGraphSettings::plain(7));
    const auto curve = oracle::all_tradeoffs(other, Order::given);
    if (curve.size() < 2) continue;
    const Problem problem{.graph = other, .budget = curve.back().peak, .order = Order::given};
    const Outcome once = run_solver(*solver, problem, "intervals=1");
    CHECK_FALSE(once.plan);
    REQUIRE(once.model);
    CHECK(once.model->infeasible);
    solve::ContextSettings settings;
    settings.starts = {curve.back().plan};
    const Outcome started = run_solver(*solver, problem, "intervals=1", settings);
    REQUIRE(started.plan);
    CHECK(started.cost.duration <= curve.back().duration);
    return;
  }
}

TEST_CASE("moccasin: with the option start=auto never worse than the search") {
  NEED_CPSAT()
  const solve::SolverTable table = driver::all_solvers();
  Random random(3);
  const Graph graph = random_graph(random, RandomGraphSettings::plain(30));
  const Problem problem{.graph = graph, .budget = Bytes(own_peak(graph).count() * 8 / 10)};
  driver::Request request;
  request.solver = "moccasin";
  request.limits.work = 3'000'000;
  request.options = {{"start", "auto"}};
  const driver::Answer answer = driver::solve(table, problem, request);
  request.solver = "search";
  request.options.clear();
  request.limits.work = 100'000;
  const driver::Answer search = driver::solve(table, problem, request);
  if (search.outcome.plan) {
    REQUIRE(answer.outcome.plan);
    CHECK(answer.outcome.cost.duration <= search.outcome.cost.duration);
  }
}

TEST_CASE("moccasin: wrong results of the engine are reported") {
  Random random(5);
  const Graph graph = random_graph(random, RandomGraphSettings::plain(12));
  const Problem problem{
      .graph = graph, .budget = Bytes(own_peak(graph).count() * 9 / 10), .order = Order::given};
  const std::pair<const char*, const char*> kinds[] = {{"crash", "crashed"},
                                                       {"size", "values for"},
                                                       {"nonsense", "nonsense"},
                                                       {"zeros", "an invalid solution"},
                                                       {"bound", "without a solution"}};
  for (const auto& [how, said] : kinds) {
    CAPTURE(how);
    const FakeEngine fake("LOWTIDE_CPSAT", how);
    const Outcome outcome = run_solver(*solve::exact::moccasin::make_moccasin(), problem);
    CHECK(outcome.note.find(said) != std::string::npos);
    CHECK_FALSE(outcome.model);
    CHECK(outcome.status != Status::optimal);
  }
  // A refutation without a plan is the model's own, and believed of nothing else.
  const FakeEngine fake("LOWTIDE_CPSAT", "infeasible");
  CHECK(run_solver(*solve::exact::moccasin::make_moccasin(), problem).status == Status::unknown);
}

// What the model holds, the engine need not have found itself.
TEST_CASE("moccasin: a start plan in the model refutes a wrong bound") {
  for (const char* how : {"bound_first", "infeasible"}) {
    CAPTURE(how);
    const FakeEngine fake("LOWTIDE_CPSAT", how);
    on_small_graphs([](const Problem& problem, const solve::ContextSettings& settings, Ticks) {
      const Outcome outcome =
          run_solver(*solve::exact::moccasin::make_moccasin(), problem, "events=free", settings);
      if (outcome.status == Status::optimal) return 0;
      CHECK(outcome.note == "moccasin: CP-SAT claims a bound that a plan of the model beats");
      CHECK_FALSE(outcome.model);
      REQUIRE(outcome.plan);
      return 1;
    });
  }
}

TEST_CASE("moccasin: the name of a model lists its omissions") {
  NEED_CPSAT()
  for (int i = 0; i < 30; ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random, RandomGraphSettings::plain(7));
    const auto curve = oracle::all_tradeoffs(graph, Order::given);
    if (curve.size() < 2) continue;
    const auto name = [&](Order order, const char* options, bool start) {
      solve::ContextSettings settings;
      if (start) settings.starts = {curve[1].plan};
      const Problem problem{.graph = graph, .budget = curve[1].peak, .order = order};
      const Outcome outcome =
          run_solver(*solve::exact::moccasin::make_moccasin(), problem, options, settings);
      return outcome.model ? outcome.model->name : "";
    };
    if (name(Order::free, "", false).empty()) continue;  // settled before there was a model
    const std::string twice = "moccasin, at most 2 computations of an op, ";
    CHECK(name(Order::free, "", false) == twice + "in any order");
    CHECK(name(Order::given, "events=free", false) == twice + "in the given order");
    CHECK(name(Order::given, "events=staged", false) == twice + "staged in the given order");
    CHECK(name(Order::free, "events=staged", true) == twice + "staged in the start's order");
    CHECK(
        name(Order::given, "events=staged lengths=log intervals=1", false) ==
        "moccasin, at most 1 computation of an op, staged in the given order, log-spaced lengths");
    return;
  }
  FAIL("no graph had models to be named");
}

TEST_CASE("moccasin: events of stages are ordered, and ranges contain all legal starts") {
  Random random(2);
  const Graph graph = random_graph(random, RandomGraphSettings::plain(9));
  const std::vector<OpId> order(graph.order().begin(), graph.order().end());
  using solve::exact::moccasin::Domain;
  const solve::exact::moccasin::Events staged(graph, solve::exact::moccasin::Domain::staged, order,
                                              std::vector<int>(9, 2));
  std::int64_t last = 0;
  for (std::size_t stage = 1; stage <= 10; ++stage)
    for (std::size_t i = 1; i <= std::min<std::size_t>(stage, 9); ++i) {
      CHECK(staged.event(stage, i) > last);
      last = staged.event(stage, i);
    }
  CHECK(staged.end() > last);
  const solve::exact::moccasin::Events free(graph, solve::exact::moccasin::Domain::free, order,
                                            std::vector<int>(9, 2));
  CHECK(free.end() == 19);
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(staged.starts(order[i], 0).low == static_cast<std::int64_t>(i) + 1);
    CHECK(free.starts(order[i], 0).low <= static_cast<std::int64_t>(i) + 1);
    CHECK(free.starts(order[i], 0).high >= static_cast<std::int64_t>(i) + 1);
  }
}

}  // namespace
}  // namespace lowtide

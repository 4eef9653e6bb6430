// Checkmate's program against every way to fill its R and S, in its own cost model.
#include "lowtide/solve/exact/checkmate/checkmate.h"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"
#include "lowtide/engines/find.h"
#include "lowtide/graph/builder.h"
#include "lowtide/sim/simulate.h"

#include "oracles/brute_force.h"
#include "solve/fake_engine.h"
#include "solve/run_solver.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

#define NEED_HIGHS()                                                        \
  if (const auto engine = engines::find_engine(engines::EngineKind::highs); \
      !engine.missing.empty()) {                                            \
    MESSAGE("left out: it needs ", engine.missing);                         \
    return;                                                                 \
  }

// Checkmate's own prices: stage by stage, whatever is kept is charged from the stage's begin, and a
// value is let go after the last op of the stage that reads it unless it is kept on. One tensor an
// op, as in the paper. State: what is kept; the least time for each, stage after stage.
std::optional<Ticks> cheapest(const Graph& graph, Bytes budget) {
  const auto order = graph.order();
  const std::size_t n = order.size();
  using Set = unsigned;
  std::vector<Set> reads(n, 0);
  std::vector<std::int64_t> bytes(n), workspace(n);
  Set outputs = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const TensorId made = graph.outputs(order[i])[0];
    bytes[i] = graph.bytes(made).count();
    workspace[i] = graph.workspace(order[i]).count();
    if (graph.is_output(made)) outputs |= 1u << i;
    for (const TensorId read : graph.inputs(order[i]))
      if (!graph.is_input(read)) reads[i] |= 1u << graph.position(graph.producer(read));
  }
  const std::int64_t room = (budget - graph.resident() - graph.input_bytes()).count();
  std::map<Set, std::int64_t> states = {{0, 0}};
  for (std::size_t t = 0; t < n; ++t) {
    std::map<Set, std::int64_t> next;
    for (const auto& [kept, spent] : states)
      for (Set extra = 0; extra < 1u << t; ++extra) {
        const Set run = extra | 1u << t;
        bool legal = true;
        std::int64_t time = spent;
        for (std::size_t i = 0; i <= t; ++i) {
          if ((run >> i & 1) == 0) continue;
          legal &= (reads[i] & ~(kept | run)) == 0;
          time += graph.time(order[i]).count();
        }
        if (!legal) continue;
        const Set there = kept | run;
        for (Set keep = there;; keep = (keep - 1) & there) {
          std::int64_t used = 0;
          for (std::size_t i = 0; i < t; ++i)
            if (kept >> i & 1) used += bytes[i];
          bool fits = used <= room;
          for (std::size_t k = 0; k <= t && fits; ++k) {
            if ((run >> k & 1) == 0) continue;
            used += bytes[k];
            fits = used + workspace[k] <= room;
            for (std::size_t i = 0; i <= k; ++i) {
              if (i != k && (reads[k] >> i & 1) == 0) continue;
              bool hazard = (keep >> i & 1) != 0;
              for (std::size_t j = k + 1; j <= t; ++j)
                hazard |= (run >> j & 1) != 0 && (reads[j] >> i & 1) != 0;
              if (!hazard) used -= bytes[i];
            }
          }
          if (fits) {
            const auto [at, fresh] = next.try_emplace(keep, time);
            if (!fresh) at->second = std::min(at->second, time);
          }
          if (keep == 0) break;
        }
      }
    states = std::move(next);
  }
  std::optional<Ticks> best;
  for (const auto& [kept, spent] : states)
    if ((outputs & ~kept) == 0 && (!best || Ticks(spent) < *best)) best = Ticks(spent);
  return best;
}

TEST_CASE("checkmate: both forms agree with every way to fill R and S") {
  NEED_HIGHS()
  const auto solver = solve::exact::checkmate::make_checkmate();
  int told = 0;
  for (int i = 0; i < 200 && told < (kSanitized ? 3 : 16); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random, RandomGraphSettings::plain(6 + random.below(2)));
    const auto curve = oracle::all_tradeoffs(graph, Order::given);
    if (curve.size() < 2) continue;
    const Bytes budget(random.between(curve.back().peak.count(), own_peak(graph).count() - 1));
    const Problem problem{.graph = graph, .budget = budget, .order = Order::given};
    ++told;
    const auto truth = cheapest(graph, budget);
    for (const char* form : {"form=tight", "form=paper"}) {
      CAPTURE(form);
      const Outcome outcome = run_solver(*solver, problem, form);
      CHECK(outcome.note == "");
      REQUIRE(outcome.model);
      CHECK(outcome.model->infeasible == !truth.has_value());
      if (!truth) continue;
      CHECK(outcome.model->optimal);
      CHECK(outcome.model->bound == *truth);
      REQUIRE(outcome.plan);
      // Ours charge less.
      CHECK(outcome.cost.duration <= *truth);
      CHECK(outcome.cost.duration >= oracle::least_duration(curve, budget).value());
    }
  }
  CHECK(told > 0);
}

// An op that reads both outputs of another, which stood twice in one row; HiGHS took no such model.
TEST_CASE("checkmate: several outputs with one reader") {
  NEED_HIGHS()
  int planned = 0;
  for (int i = 0; i < (kSanitized ? 8 : 60); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(7000 + i));
    const Graph graph = random_graph(random, {.ops = 6});
    const auto curve = oracle::all_tradeoffs(graph, Order::given);
    const Problem problem{
        .graph = graph, .budget = curve[curve.size() > 1 ? 1 : 0].peak, .order = Order::given};
    for (const char* options : {"form=tight", "form=paper", "mode=rounding", "mode=frontier"}) {
      CAPTURE(options);
      const Outcome outcome =
          run_solver(*solve::exact::checkmate::make_checkmate(), problem, options);
      CHECK(outcome.note.find("HiGHS") == std::string::npos);
      CHECK(outcome.bound.duration <= oracle::least_duration(curve, problem.budget).value());
      if (!outcome.model || !outcome.model->optimal || options[0] == 'm') continue;
      REQUIRE(outcome.plan);
      CHECK(outcome.cost.duration <= outcome.model->bound);
      ++planned;
    }
  }
  CHECK(planned > 0);
}

// Bytes from one to a billion: HiGHS takes a solution that is a few bytes over the budget.
TEST_CASE("checkmate: a solution over the budget within the tolerance is no optimum") {
  NEED_HIGHS()
  for (int i = 0; i < (kSanitized ? 8 : 60); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    GraphBuilder builder;
    std::vector<TensorId> made;
    const std::int64_t sizes[] = {1, 3, 1'000'000'000, 1'000'000'007};
    for (int op = 0; op < 7; ++op) {
      Tensor tensor;
      tensor.bytes = Bytes(sizes[random.below(4)]);
      Op one;
      one.time = Ticks(random.between(1, 9));
      std::vector<TensorId> reads;
      for (const TensorId each : made)
        if (random.chance(0.4)) reads.push_back(each);
      made.push_back(builder.add_tensor(std::move(tensor)));
      builder.add_op(std::move(one), reads, {made.back()});
    }
    builder.add_output(made.back());
    const Graph graph = builder.build();
    for (const auto& schedule : oracle::all_tradeoffs(graph, Order::given))
      for (const std::int64_t less : {0, 1}) {
        const Problem problem{
            .graph = graph, .budget = schedule.peak - Bytes(less), .order = Order::given};
        for (const char* form : {"form=tight", "form=paper"}) {
          CAPTURE(form);
          const Outcome outcome =
              run_solver(*solve::exact::checkmate::make_checkmate(), problem, form);
          CHECK(outcome.note == "");
          if (!outcome.model || !outcome.model->optimal) continue;
          REQUIRE(outcome.plan);
          const auto truth = cheapest(graph, problem.budget);
          REQUIRE(truth);
          CHECK(outcome.model->bound <= *truth);
          CHECK(outcome.cost.duration <= *truth);
        }
      }
  }
}

TEST_CASE("checkmate: bounds of the frontier hold for every plan") {
  NEED_HIGHS()
  const auto solver = solve::exact::checkmate::make_checkmate();
  int raised = 0, proven = 0;
  for (int i = 0; i < samples(60); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(2000 + i));
    RandomGraphSettings settings;
    if (i % 2 == 0) settings = RandomGraphSettings::plain(0);
    settings.ops = 4 + random.below(4);
    const Graph graph = random_graph(random, settings);
    const auto curve = oracle::all_tradeoffs(graph, Order::given);
    for (const auto& schedule : curve) {
      const Problem problem{.graph = graph, .budget = schedule.peak, .order = Order::given};
      solve::ContextSettings start;
      if (random.chance(0.5)) start.starts = {schedule.plan};
      const Outcome outcome = run_solver(*solver, problem, "mode=frontier", start);
      CHECK(outcome.note == "");
      const Ticks truth = oracle::least_duration(curve, schedule.peak).value();
      CHECK(outcome.bound.duration <= truth);
      CHECK(outcome.status != Status::infeasible);
      CHECK_FALSE((outcome.model && outcome.model->infeasible));
      raised += outcome.bound.duration > graph.total_time();
      proven += outcome.bound.duration == truth && truth > graph.total_time();
    }
  }
  MESSAGE(raised, " bounds above the base, ", proven, " of them the optimum");
  CHECK(proven > 0);
}

TEST_CASE("checkmate: graphs of 30 ops in seconds") {
  NEED_HIGHS()
  if (kSanitized) return;
  RandomGraphSettings settings = RandomGraphSettings::plain(30);
  settings.reads = 2;
  for (const int percent : {90, 75, 60}) {
    CAPTURE(percent);
    Random random(4);
    const Graph graph = random_graph(random, settings);
    const Problem problem{.graph = graph,
                          .budget = Bytes(own_peak(graph).count() * percent / 100),
                          .order = Order::given};
    solve::ContextSettings limits;
    limits.limits.seconds = 60;
    limits.threads = 2;
    const Outcome outcome =
        run_solver(*solve::exact::checkmate::make_checkmate(), problem, "", limits);
    if (outcome.status == Status::infeasible) continue;  // known at once
    REQUIRE(outcome.model);
    CHECK((outcome.model->optimal || outcome.model->infeasible));
  }
}

TEST_CASE("checkmate: every kind of graph, and the note of rounding") {
  NEED_HIGHS()
  const auto solver = solve::exact::checkmate::make_checkmate();
  int failed = 0, told = 0, refuted = 0;
  for (int i = 0; i < (kSanitized ? 12 : 25); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(500 + i));
    const Graph graph = random_graph(random, {.ops = 12});
    const Problem problem{
        .graph = graph, .budget = Bytes(own_peak(graph).count() * 85 / 100), .order = Order::given};
    for (const char* mode : {"mode=milp", "mode=rounding", "mode=random",
                             "mode=rounding form=paper", "mode=random form=paper"}) {
      CAPTURE(mode);
      const Outcome outcome = run_solver(*solver, problem, mode);
      CHECK(outcome.note.find("none") == std::string::npos);
      if (outcome.note.find("no solution") != std::string::npos) {
        ++refuted;
        CHECK_FALSE(outcome.plan);
      }
      if (outcome.note.find("roundings keep the budget") == std::string::npos) continue;
      ++told;
      CHECK_FALSE(outcome.model);
      if (outcome.note.find(" 0 of ") == std::string::npos) continue;
      CHECK_FALSE(outcome.plan);
      CHECK(outcome.note.find("over it by") != std::string::npos);
      ++failed;
    }
  }
  if (kSanitized) return;  // too few to be sure of either
  CHECK(told > 0);
  CHECK(failed > 0);
  CHECK(refuted > 0);
}

TEST_CASE("checkmate: a bound above the engine's own solution is reported") {
  const FakeEngine fake("LOWTIDE_HIGHS", "liar");
  on_small_graphs([](const Problem& problem, const solve::ContextSettings& settings, Ticks best) {
    const Outcome outcome =
        run_solver(*solve::exact::checkmate::make_checkmate(), problem, "", settings);
    if (outcome.status == Status::optimal) return 0;
    CHECK(outcome.note == "checkmate: HiGHS claims a bound that its own solution beats");
    CHECK_FALSE(outcome.model);
    REQUIRE(outcome.plan);
    CHECK(outcome.cost.duration == best);
    return 1;
  });
}

// The frontier's bounds are the problem's own, so these lies would be claims.
TEST_CASE("checkmate: a wrong bound of the frontier is refuted by any plan") {
  for (const char* how : {"bound_first", "infeasible", "bound"}) {
    CAPTURE(how);
    const FakeEngine fake("LOWTIDE_HIGHS", how);
    on_small_graphs(
        [&](const Problem& problem, const solve::ContextSettings& settings, Ticks best) {
          const Outcome beside = run_solver(*solve::exact::checkmate::make_checkmate(), problem,
                                            "mode=frontier", settings);
          if (beside.status == Status::optimal) return 0;
          CHECK(beside.note.find("HiGHS claims") != std::string::npos);
          CHECK(beside.bound.duration <= best);
          CHECK_FALSE(beside.model);
          // The lie first, then a plan.
          solve::Context context(problem, "test", {});
          context.raise_engine_bound(best + Ticks(5));
          CHECK(context.bound().duration == best + Ticks(5));
          context.offer(settings.starts.front());
          CHECK_FALSE(context.engine_believed());
          CHECK(context.bound().duration == problem.graph.total_time());
          context.raise_engine_bound(best);
          CHECK(context.bound().duration == problem.graph.total_time());
          return 1;
        });
  }
}

TEST_CASE("checkmate: bounds beyond 63 bits prove nothing") {
  for (const char* value : {"inf", "nan", "1e300"})
    for (const char* mode : {"mode=milp", "mode=frontier"}) {
      CAPTURE(value);
      const FakeEngine fake("LOWTIDE_HIGHS", "bound_first", value);
      on_small_graphs([&](const Problem& problem, const solve::ContextSettings&, Ticks best) {
        const Outcome outcome =
            run_solver(*solve::exact::checkmate::make_checkmate(), problem, mode);
        CHECK(outcome.status != Status::optimal);
        CHECK(outcome.bound.duration <= best);
        return 1;
      });
    }
}

}  // namespace
}  // namespace lowtide

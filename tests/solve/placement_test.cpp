// The rule against verify, against every placement of small cases, and by hand.
#include "lowtide/solve/sequence/placement.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "lowtide/plan/outcome.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/sequence.h"

#include "support/judge.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

Cost cost_of(const Problem& problem, std::span<const Event> events) {
  const Plan plan = plan_from_events(problem.graph, events, problem.machine);
  const Timeline timeline = simulate(problem.graph, plan);
  const std::string why = timeline.violation ? timeline.violation->reason : "";
  REQUIRE_MESSAGE(!timeline.violation, why);
  return timeline.cost;
}

// The transfers alone: every free right behind the last use, every fetch right before the next.
std::vector<Event> tightest(const Problem& problem, std::span<const Event> events) {
  std::vector<Event> plain, result, due;
  for (const Event& event : events)
    if (event.kind != Event::Kind::hold) plain.push_back(event);
  for (const Event& event : solve::without_unread(problem, plain)) {
    if (!event.is_compute()) {
      due.push_back(event);
      continue;
    }
    std::vector<Event> later;
    for (const Event& fetch : due) {
      const auto inputs = problem.graph.inputs(event.op());
      const bool now = std::ranges::find(inputs, fetch.tensor()) != inputs.end();
      (now ? result : later).push_back(fetch);
    }
    due = std::move(later);
    result.push_back(event);
  }
  result.insert(result.end(), due.begin(), due.end());
  return result;
}

TEST_CASE("placement: a free waits for its copy, a fetch for its time") {
  // Copies of t0 take 5 + 10 out and 3 + 5 in; op 1 takes 100.
  const Graph graph = Sketch({20, 1, 1, 1, 1})
                          .op({0}, {1}, 10)
                          .op({1}, {2}, 50)
                          .op({2}, {3}, 50)
                          .op({0, 3}, {4}, 7)
                          .keep({4})
                          .graph();
  Problem problem{.graph = graph, .budget = Bytes(23), .machine = machine_by_hand()};
  const std::vector<Event> events = {Event::compute(OpId(0)), Event::compute(OpId(1)),
                                     Event::compute(OpId(2)), Event::fetch(TensorId(0)),
                                     Event::compute(OpId(3))};
  // Room for all: t0 is freed before op 2, and back before op 3 without a wait.
  const solve::Placement easy = solve::place(problem, events);
  CHECK(easy.within);
  CHECK(easy.events == std::vector<Event>{Event::compute(OpId(0)), Event::compute(OpId(1)),
                                          Event::hold(TensorId(0)), Event::fetch(TensorId(0)),
                                          Event::compute(OpId(2)), Event::compute(OpId(3))});
  CHECK(cost_of(problem, easy.events).duration == graph.total_time());
  // Room for no more than op 0 and op 3: op 1 waits for the copy, op 3 for the fetch.
  problem.budget = Bytes(22);
  const solve::Placement hard = solve::place(problem, events);
  CHECK(hard.within);
  CHECK(cost_of(problem, hard.events).duration <= Ticks(15 + 100 + 8 + 7));
  CHECK(cost_of(problem, hard.events).peak <= Bytes(22));
  // No placement has room for op 3.
  problem.budget = Bytes(21);
  CHECK_FALSE(solve::place(problem, events).within);
}

TEST_CASE("placement: keeps every budget that the tightest one keeps, and is never illegal") {
  int away = 0, longer = 0, shorter = 0;
  for (int seed = 0; seed < samples(3000); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    RandomGraphSettings settings;
    settings.ops = 2 + random.below(14);
    settings.on_host = 0.1;
    const Graph graph = random_graph(random, settings);
    const Order order = random.chance(0.5) ? Order::given : Order::free;
    const Plan plan = random_plan(random, graph, {.order = order});
    Problem problem{.graph = graph, .budget = Bytes::max(), .order = order};
    problem.machine = plan.machine;
    const std::vector<Event> events = tightest(problem, events_of(graph, plan));
    const Cost least = cost_of(problem, events);
    const Bytes most = least.peak + least.peak;
    for (const Bytes budget : {least.peak - Bytes(1), least.peak, least.peak + Bytes(3), most}) {
      if (budget < Bytes(0)) continue;
      problem.budget = budget;
      const solve::Placement placed = solve::place(problem, events);
      CHECK(placed.within == (budget >= least.peak));
      const Cost cost = cost_of(problem, placed.events);
      if (placed.within) CHECK(cost.peak <= budget);
      // What is computed is the same, but for what only dropped fetches needed.
      CHECK(computations(placed.events) == computations(events));
      if (!placed.within) continue;
      away += transfers(placed.events) ? 1 : 0;
      longer += cost.duration > least.duration ? 1 : 0;
      shorter += cost.duration < least.duration ? 1 : 0;
      // A second time nothing is won by what the first has put anywhere.
      const solve::Placement again = solve::place(problem, placed.events);
      CHECK(again.within);
      CHECK(cost_of(problem, again.events).duration <= cost.duration);
    }
  }
  CHECK(away > samples(3000) / 3);
  MESSAGE("shorter than the tightest: ", shorter, ", longer: ", longer);
}

// Every placement of the fetches of `events`, with holds before every position: the shortest within
// the budget.
class EveryPlacement {
 public:
  EveryPlacement(const Problem& problem, std::span<const Event> events) : problem_(problem) {
    std::vector<std::size_t> last(problem.graph.tensor_count(), SIZE_MAX);
    for (const Event& event : events) {
      if (!event.is_compute()) {
        away_.push_back({event.tensor(), last[event.tensor().index()] + 1, ops_.size(), 0, 0});
        continue;
      }
      for (TensorId id : problem.graph.inputs(event.op())) last[id.index()] = ops_.size();
      for (TensorId id : problem.graph.outputs(event.op())) last[id.index()] = ops_.size();
      ops_.push_back(event.op());
    }
    choose(0);
  }
  Ticks shortest() const { return shortest_; }

 private:
  struct Away {
    TensorId tensor;
    std::size_t from, until, hold, fetch;
  };
  void choose(std::size_t k) {
    if (k < away_.size()) {
      Away& away = away_[k];
      for (away.hold = away.from; away.hold <= away.until; ++away.hold)
        for (away.fetch = away.hold; away.fetch <= away.until; ++away.fetch) choose(k + 1);
      return;
    }
    std::vector<Event> events;
    for (std::size_t at = 0; at <= ops_.size(); ++at) {
      for (const Away& away : away_)
        if (away.hold == at && away.hold > away.from) events.push_back(Event::hold(away.tensor));
      for (const Away& away : away_)
        if (away.fetch == at) events.push_back(Event::fetch(away.tensor));
      if (at < ops_.size()) events.push_back(Event::compute(ops_[at]));
    }
    const Cost cost = cost_of(problem_, events);
    if (cost.peak <= problem_.budget) shortest_ = std::min(shortest_, cost.duration);
  }

  const Problem& problem_;
  std::vector<OpId> ops_;
  std::vector<Away> away_;
  Ticks shortest_ = Ticks::max();
};

// A training step of eight ops; the forward's tensors come back for the backward.
TEST_CASE("placement: against every placement of two tensors") {
  int best = 0, cases = 0;
  double excess = 0;
  for (int seed = 0; seed < samples(60); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const auto bytes = [&] { return random.between(2, 12); };
    const auto time = [&] { return random.between(2, 12); };
    const Graph graph = Sketch({bytes(), bytes(), bytes(), bytes(), bytes(), bytes(), bytes(), 1})
                            .op({}, {0}, time())
                            .op({0}, {1}, time())
                            .op({1}, {2}, time())
                            .op({2}, {3}, time())
                            .op({3, 2}, {4}, time())
                            .op({4, 1}, {5}, time())
                            .op({5, 0}, {6}, time())
                            .op({6}, {7}, time())
                            .keep({7})
                            .graph();
    Problem problem{.graph = graph, .budget = Bytes::max(), .machine = random_machine(random)};
    std::vector<Event> events = events_from(graph.order());
    events.insert(events.begin() + 6, Event::fetch(TensorId(0)));
    events.insert(events.begin() + 5, Event::fetch(TensorId(1)));
    const Bytes low = cost_of(problem, events).peak, high = own_peak(graph);
    if (low >= high) continue;
    problem.budget = Bytes(random.between(low.count(), high.count() - 1));
    const solve::Placement placed = solve::place(problem, events);
    REQUIRE(placed.within);
    const Ticks duration = cost_of(problem, placed.events).duration;
    const Ticks shortest = EveryPlacement(problem, events).shortest();
    // Tensors that stay need no copy, which none of the placements tried leaves out.
    ++cases;
    best += duration <= shortest ? 1 : 0;
    excess += std::max(0.0, overhead_percent(duration, shortest));
  }
  REQUIRE(cases > samples(60) / 3);
  MESSAGE(best, " of ", cases, " are the best; longer by ", excess / cases, " per cent on average");
  CHECK(best * 4 >= cases * 3);
  CHECK(excess <= 3.4 * cases);
}

}  // namespace
}  // namespace lowtide

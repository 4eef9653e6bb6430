// Durations with network ops, by hand. A copy out takes 5 + bytes / 2 ticks, one in 3 + bytes / 4;
// the comments follow the lanes.
#include <vector>

#include <doctest/doctest.h>

#include "support/judge.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

std::int64_t duration(const Graph& graph, std::string_view words) {
  return accept(graph, steps(words)).duration.count();
}

// A gather (op 0: 40, on the network) of t0 into t1, its wait (op 1: 0) into t2, and its reader (op
// 3: 7), beside an op that needs none of it (op 2: 100).
Graph gather() {
  return Sketch({10, 40, 0, 5, 1})
      .op({0}, {1}, 40)
      .network()
      .op({0, 1}, {2}, 0)
      .op({}, {3}, 100)
      .op({1, 2, 3}, {4}, 7)
      .keep({4})
      .graph();
}

TEST_CASE("network: an op runs beside the computing, and its reader waits for it") {
  CHECK(duration(gather(), "c0 c1 c2 c3") == 147);  // the wait holds the compute lane until 40
  CHECK(duration(gather(), "c0 c2 c1 c3") == 107);  // gathered 0..40 beside op 2
  CHECK(duration(gather(), "c2 c0 c1 c3") == 147);  // gathered 100..140
  CHECK(own_duration(gather()) == Ticks(147));
  CHECK(gather().total_time() == Ticks(147));
  CHECK(gather().least_time() == Ticks(107));
}

TEST_CASE("network: the end waits for what nothing reads") {
  const Graph graph = Sketch({1, 1}).op({}, {0}, 40).network().op({}, {1}, 10).keep({1}).graph();
  CHECK(duration(graph, "c0 c1") == 40);
  CHECK(duration(graph, "c1 c0") == 50);
}

TEST_CASE("network: ops run one after another in the order of their issue") {
  const Graph graph = Sketch({1, 1, 1, 1})
                          .op({}, {0}, 40)
                          .network()
                          .op({}, {1}, 30)
                          .network()
                          .op({1}, {2}, 5)
                          .op({0}, {3}, 5)
                          .keep({2, 3})
                          .graph();
  CHECK(duration(graph, "c0 c1 c2 c3") == 80);  // 0..40, 40..70, op 2 70..75, op 3 ..80
  CHECK(duration(graph, "c0 c1 c3 c2") == 75);  // op 3 40..45, op 2 70..75
  CHECK(duration(graph, "c1 c0 c2 c3") == 75);  // 0..30, 30..70; op 2 30..35, op 3 70..75
}

TEST_CASE("network: an op waits for what it reads, and computing goes on") {
  // op 0 (10) makes t0; op 1 (20) is on the network and reads it and t1, which comes from the host
  const Graph graph = Sketch({1, 20, 1, 1})
                          .op({}, {0}, 10)
                          .op({0, 1}, {2}, 20)
                          .network()
                          .op({}, {3}, 50)
                          .keep({2, 3})
                          .graph();
  CHECK(duration(graph, "c0 c1 c2") == 60);  // sent 10..30 beside 10..60
  // t1 out 0..15, freed at 15, back 15..23; sent 23..43; op 2 15..65
  CHECK(duration(graph, "c0 o1 f1 p1 c1 c2") == 65);
}

TEST_CASE("network: a free waits for the ops on the network that read or make its tensor") {
  const Graph graph = Sketch({10, 10, 1})
                          .op({0}, {1}, 40)
                          .network()
                          .op({}, {2}, 100)
                          .releasable({0})
                          .keep({2})
                          .graph();
  CHECK(duration(graph, "c0 f0 f1 c1") == 140);
  CHECK(duration(graph, "c0 f1 c1") == 140);
  CHECK(duration(graph, "c0 c1 f0 f1") == 100);
}

TEST_CASE(
    "network: who changes or overwrites a tensor waits for the ops on the network that read it") {
  const Graph changed =
      Sketch({10, 10}).op({0}, {1}, 40).network().op({0}, {}, 10).mutates({0}).keep({1}).graph();
  CHECK(duration(changed, "c0 c1") == 50);
  const Graph over = Sketch({10, 10, 10})
                         .op({0}, {1}, 40)
                         .network()
                         .op({0}, {2}, 10)
                         .in_place({{0, 2}})
                         .releasable({0})
                         .keep({1, 2})
                         .graph();
  CHECK(duration(over, "c0 c1") == 40);
  CHECK(duration(over, "c0 i1,0") == 50);
}

TEST_CASE("network: an op on the network may run in place") {
  const Graph graph = Sketch({10, 10, 1, 1})
                          .op({}, {0}, 10)
                          .op({0}, {1}, 40)
                          .network()
                          .in_place({{0, 1}})
                          .op({}, {2}, 20)
                          .op({1}, {3}, 5)
                          .keep({2, 3})
                          .graph();
  const Cost cost = accept(graph, steps("c0 i1,0 c2 c3"));
  CHECK(cost.duration == Ticks(55));  // 10..50; op 2 10..30; op 3 50..55
  CHECK(cost.peak == Bytes(12));
}

TEST_CASE("network: a barrier waits for the network") {
  const Graph graph = Sketch({1, 1, 1})
                          .op({}, {0}, 40)
                          .network()
                          .op({}, {1}, 0)
                          .barrier()
                          .op({1}, {2}, 10)
                          .keep({2})
                          .graph();
  CHECK(duration(graph, "c0 c1 c2") == 50);
}

TEST_CASE("network: a copy waits for what an op on the network makes") {
  const Graph graph = Sketch({20, 1}).op({}, {0}, 40).network().op({}, {1}, 10).keep({1}).graph();
  CHECK(duration(graph, "c0 o0 c1") == 55);  // 0..40, copied ..55
}

TEST_CASE("network: memory counts by the order of the steps") {
  const Cost cost = accept(gather(), steps("c0 c2 c1 c3"));
  CHECK(cost.peak == Bytes(10 + 40 + 5 + 1));
}

TEST_CASE("network: an op that is gathered again takes its time again") {
  CHECK(duration(gather(), "c0 c1 f1 f2 c2 c0 c1 c3") == 40 + 100 + 40 + 7);
  CHECK(duration(gather(), "c0 c1 f1 f2 c0 c2 c1 c3") == 40 + 100 + 7);
}

TEST_CASE("network: begin, end and the clock of the compute lane") {
  const Timeline timeline = simulate(gather(), steps("c2 c0 c1 c3"));
  CHECK(timeline.begin == std::vector{Ticks(0), Ticks(100), Ticks(140), Ticks(140)});
  CHECK(timeline.end == std::vector{Ticks(100), Ticks(140), Ticks(140), Ticks(147)});
  CHECK(timeline.clock == std::vector{Ticks(100), Ticks(100), Ticks(140), Ticks(147)});
}

TEST_CASE(
    "network: no plan takes longer than with all ops on the compute lane, nor less than the "
    "lanes") {
  for (int seed = 0; seed < samples(300); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    RandomGraphSettings settings;
    settings.network = 0.4;
    const Graph graph = random_graph(random, settings);
    const Graph alone = Graph(graph).without_network_lane();
    CHECK(alone.least_time() == graph.total_time());
    for (const bool transfers : {false, true}) {
      const Plan plan = random_plan(random, graph, {.transfers = transfers});
      const Cost cost = accept(graph, plan), serial = accept(alone, plan);
      CHECK(cost.peak == serial.peak);
      CHECK(cost.duration <= serial.duration);
      CHECK(cost.duration >= graph.least_time());
    }
  }
}

}  // namespace
}  // namespace lowtide

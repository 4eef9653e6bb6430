// Durations with transfers, by hand. A copy out takes 5 + bytes / 2 ticks, one in 3 + bytes / 4;
// the comments follow the three lanes.
#include <vector>

#include <doctest/doctest.h>

#include "support/judge.h"
#include "support/print.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

// t0 (10, input) -> op 0 (10) -> t1 (20) -> op 1 (100) -> t2 (30) -> op 2 (7), also of t1 -> t3 (5)
Graph chain() {
  return Sketch({10, 20, 30, 5})
      .op({0}, {1}, 10)
      .op({1}, {2}, 100)
      .op({1, 2}, {3}, 7)
      .keep({3})
      .graph();
}

// t0 (20, input) is read first by op 0 and last by op 2; op 1 takes 100 between
Graph swap() {
  return Sketch({20, 1, 1, 1})
      .op({0}, {1}, 10)
      .op({1}, {2}, 100)
      .op({0, 2}, {3}, 7)
      .keep({3})
      .graph();
}

// op 0 (10) changes the input t0 (20); op 1 takes 50
Graph state() { return Sketch({20, 1}).op({0}, {}, 10).mutates({0}).op({}, {1}, 50).graph(); }

std::int64_t duration(const Graph& graph, std::string_view words) {
  return accept(graph, steps(words)).duration.count();
}

TEST_CASE("lanes: an offload starts when its tensor exists and runs beside the ops") {
  CHECK(duration(chain(), "c0 o1 c1 c2") == 117);  // copy 10..25
  CHECK(duration(chain(), "c0 c1 c2 o1") == 117);  // the same, though its step comes last
  CHECK(duration(chain(), "c0 c1 c2 o3") == 125);  // 117 + 5 + 3: rounded up, waited for
}

TEST_CASE("lanes: first in first out") {
  CHECK(duration(chain(), "c0 c1 c2 o3 o0") ==
        135);  // t3 117..125, then t0 though it was there at 0
  const Graph two = Sketch({20, 40, 1, 1}).op({}, {2}, 10).op({0, 1, 2}, {3}, 7).keep({3}).graph();
  // out: t0 0..15, t1 15..40; in: t0 40..48, t1 48..61; op 0 40..50, op 1 61..68
  CHECK(duration(two, "o0 o1 f0 f1 p0 p1 c0 c1") == 68);
}

TEST_CASE("lanes: a free holds the compute lane until the last copy has ended") {
  CHECK(duration(swap(), "o0 c0 f0 c1 p0 c2") == 130);  // free at 15, op 1 15..115, in ..123
  CHECK(duration(swap(), "o0 c0 c1 f0 p0 c2") == 125);  // no wait: op 1 10..110, in ..118
  // copies of t1 10..25 and 25..40; free at 40; op 0 ..50, op 1 ..150, op 2 ..157
  CHECK(duration(chain(), "c0 o1 o1 f1 c0 c1 c2") == 157);
  // t2's copy is 110..130, but t1 has none: free at 117
  CHECK(duration(chain(), "c0 o0 c1 o2 c2 f1") == 130);
}

TEST_CASE("lanes: a free waits for a copy in as well") {
  const Graph graph =
      Sketch({20, 1, 1}).op({0}, {1}, 10).op({}, {2}, 50).releasable({0}).keep({1, 2}).graph();
  CHECK(duration(graph, "o0 c0 f0 p0 f0 c1") == 73);  // free at 15, in ..23, free at 23, op 1 ..73
  CHECK(duration(graph, "o0 c0 f0 p0 c1") == 65);
}

TEST_CASE("lanes: a prefetch waits for the compute lane, its reader for the prefetch") {
  CHECK(duration(swap(), "o0 c0 f0 p0 c1 c2") == 122);          // in 15..23 beside op 1
  CHECK(duration(swap(), "o0 c0 f0 c1 p0 c2") == 115 + 8 + 7);  // not before 115
  Plan plan = steps("o0 c0 f0 p0 c1 c2");
  plan.machine->host_to_device.latency = Ticks(300);
  CHECK(accept(swap(), plan).duration == Ticks(327));  // in 15..320; op 1 does not wait, op 2 does
}

TEST_CASE("lanes: in and out run beside each other") {
  const Graph graph = Sketch({20, 1000, 1}).op({0}, {2}, 7).keep({2}).graph();
  CHECK(duration(graph, "o0 o1 f0 p0 c0") == 520);        // t1 out 15..520, t0 in 15..23
  CHECK(duration(graph, "o0 o1 f0 f1 p0 p1 c0") == 781);  // all wait for 520; t1 in 528..781
}

TEST_CASE("lanes: copies of prefetched and recomputed tensors") {
  CHECK(duration(swap(), "o0 c0 f0 p0 o0 f0 p0 c1 c2") == 145);  // in 15..23, out ..38, in ..46
  CHECK(duration(swap(), "o0 c0 f0 p0 f0 p0 c1 c2") == 15 + 8 + 100 + 7);  // one copy serves twice
  CHECK(duration(chain(), "c0 f1 c0 o1 c1 c2") == 127);                    // made 10..20, out ..35
  CHECK(duration(chain(), "c0 f1 c0 o1 f1 c0 c1 c2") == 152);              // free at 35
}

TEST_CASE("lanes: a mutated tensor exists after the mutation") {
  CHECK(duration(state(), "c0 o0 f0 c1 p0") == 83);     // out 10..25, op 1 ..75, in ..83
  CHECK(duration(state(), "o0 c0 o0 f0 p0 c1") == 80);  // out 0..15, 15..30; op 1 30..80
}

TEST_CASE("lanes: a barrier waits for every transfer before it and holds every one after it") {
  const Graph first =
      Sketch({1000, 1, 1}).op({}, {1}, 0).barrier().op({1}, {2}, 7).keep({2}).graph();
  CHECK(duration(first, "o0 c0 c1") == 512);  // out 0..505
  const Graph small = Sketch({20, 1, 1}).op({}, {1}, 0).barrier().op({1}, {2}, 7).keep({2}).graph();
  CHECK(duration(small, "o0 f0 p0 c0 c1") == 30);  // in 15..23, which the barrier does not read
  const Graph last =
      Sketch({1000, 1, 1}).op({}, {1}, 100).op({1}, {2}, 0).barrier().keep({2}).graph();
  CHECK(duration(last, "c0 c1 o0") == 605);  // out 100..605
  CHECK(duration(last, "c0 o0 c1") == 505);
  const Graph slow = Sketch({20, 1}).op({}, {1}, 30).barrier().keep({1}).graph();
  CHECK(duration(slow, "c0 o0 f0 p0") == 53);  // its own time counts: out 30..45, in ..53
}

TEST_CASE("lanes: a transfer of no bytes takes the latency") {
  const Graph graph = Sketch({0, 0}).op({0}, {1}, 2).keep({1}).graph();
  CHECK(duration(graph, "o0 f0 p0 c0") == 10);
}

TEST_CASE("lanes: the host's peak counts each tensor once") {
  CHECK(accept(chain(), steps("c0 o0 o1 c1 o1 c2 f1")).host_peak == Bytes(30));
  CHECK(accept(state(), steps("o0 c0 o0 f0 c1 p0")).host_peak == Bytes(20));
}

TEST_CASE("lanes: the end of each step") {
  const Timeline timeline = simulate(swap(), steps("o0 c0 f0 p0 c1 c2"));
  const std::vector<Ticks> expected = {Ticks(15), Ticks(10),  Ticks(15),
                                       Ticks(23), Ticks(115), Ticks(122)};
  CHECK(timeline.end == expected);
}

TEST_CASE("lanes: a plan that transfers must name a machine that can") {
  Plan plan = steps("o0 c0 f0 p0 c1 c2");
  plan.machine.reset();
  refuse(swap(), plan, 0, "names no machine");
  plan = steps("o0 c0 f0 p0 c1 c2");
  plan.machine->host_to_device.bytes = Bytes(0);
  // Not through the judge: the format has no such machine.
  const Timeline timeline = simulate(swap(), plan);
  REQUIRE(timeline.violation);
  CHECK(timeline.violation->step == 3);
}

TEST_CASE("lanes: durations beyond 2^63 are refused") {
  Plan plan = steps("o0 c0 f0 c1 p0 c2");
  plan.machine->device_to_host.latency = Ticks(INT64_MAX - 10);
  refuse(swap(), plan, 3, "63 bits");  // out ends at INT64_MAX, and op 1 begins there
  plan.machine->device_to_host = {Ticks(0), Bytes(1), Ticks(INT64_MAX)};
  refuse(swap(), plan, 0, "63 bits");
  const Graph slow = Sketch({1, 1}).op({}, {0}, INT64_MAX - 1).op({0}, {1}, 1).keep({1}).graph();
  CHECK(accept(slow, steps("c0 c1")).duration == Ticks(INT64_MAX));
  refuse(slow, steps("c0 f0 c0 c1"), 2, "63 bits");
}

}  // namespace
}  // namespace lowtide

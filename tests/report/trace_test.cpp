// Traces of plans: lanes, slices and the counter; their formats are read in tests/cli.
#include "lowtide/report/trace.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/sim/simulate.h"

#include "io/refusal.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide::report {
namespace {

TEST_CASE("traces: copies have lanes of their own, and recomputations a category") {
  const Graph graph = Sketch({10, 100, 30, 40, 5})
                          .op({0}, {1}, 7)
                          .op({1}, {2}, 2)
                          .op({2}, {3}, 3)
                          .workspace(60)
                          .op({1, 3}, {4}, 4)
                          .resident(1000)
                          .keep({4})
                          .graph();
  const Plan plan = steps("c0 o1 c1 f1 c2 f2 p1 c3 f1 f3");
  const Trace trace = trace_of(graph, make_report(graph, &plan));
  const Timeline timeline = simulate(graph, plan);
  std::string lanes;
  for (const TraceSlice& slice : trace.slices)
    lanes += std::string(to_string(slice.lane)) + " " + std::to_string(slice.begin / 1000) + "-" +
             std::to_string(slice.end / 1000) + "; ";
  CHECK(lanes ==
        "compute 0-7; compute 7-9; compute 62-65; compute 93-97; copies out 7-62; copies in "
        "65-93; ");
  CHECK(trace.slices[4].bytes == graph.bytes(TensorId(1)));
  CHECK(trace.counter.front().live == timeline.start);
  CHECK(trace.counter.back().time == timeline.cost.duration.count() * 1000);
}

TEST_CASE(
    "traces: network ops have a lane of their own, and the counter follows the compute lane") {
  // gathered 0-40 beside op 1, which ends at 100
  const Graph graph = Sketch({10, 40, 5, 1})
                          .op({0}, {1}, 40)
                          .network()
                          .op({}, {2}, 100)
                          .op({1, 2}, {3}, 7)
                          .keep({3})
                          .graph();
  const Plan plan = steps("c0 c1 c2");
  const Trace trace = trace_of(graph, make_report(graph, &plan));
  std::string lanes;
  for (const TraceSlice& slice : trace.slices)
    lanes += std::string(to_string(slice.lane)) + " " + std::to_string(slice.begin / 1000) + "-" +
             std::to_string(slice.end / 1000) + "; ";
  CHECK(lanes == "compute 0-100; compute 100-107; network 0-40; ");
  for (std::size_t i = 1; i < trace.counter.size(); ++i)
    CHECK(trace.counter[i - 1].time <= trace.counter[i].time);
  CHECK(trace.counter[2].time == 0);  // the gathered bytes are in use from the issue on
}

TEST_CASE("traces: the counter of random plans reaches the peak and no more") {
  for (int i = 0; i < 200 * test_scale(); ++i) {
    Random random(static_cast<std::uint64_t>(i));
    RandomGraphSettings settings;
    settings.ops = random.below(13);
    const Graph graph = random_graph(random, settings);
    const Plan plan = random_plan(random, graph, {.restless = random.uniform()});
    const Trace trace = trace_of(graph, make_report(graph, &plan));
    const auto peak = std::ranges::max_element(trace.counter, {}, &TraceCount::live);
    CHECK(peak->live == simulate(graph, plan).cost.peak);
    CHECK(std::ranges::is_sorted(trace.counter, {}, &TraceCount::time));
    const auto computed = std::ranges::count(trace.slices, TraceLane::compute, &TraceSlice::lane);
    CHECK(static_cast<std::size_t>(computed) == computations(plan).size());
  }
}

TEST_CASE("traces: times that do not fit and names without a format are refused") {
  const Graph graph = Sketch({1, 1}).op({0}, {1}, INT64_MAX / 10).keep({1}).graph();
  CHECK(refusal_of([&] { trace_of(graph, make_report(graph)); }).reason ==
        "the plan takes 2^63 ns or more, which does not fit into a trace");
  CHECK(trace_format("a.json.gz") == TraceFormat::chrome);
  CHECK(trace_format("a.pftrace") == TraceFormat::perfetto);
  CHECK(refusal_of([&] { trace_format("a.txt"); }) ==
        Refusal{"", "a.txt",
                "a trace is written to a file that ends in .json or .json.gz (Chrome) or .pftrace "
                "(Perfetto)"});
}

}  // namespace
}  // namespace lowtide::report

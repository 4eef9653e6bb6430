// The buffers of plans against the simulator's bytes, and by hand.
#include "lowtide/layout/lifetimes.h"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/simulate.h"

#include "support/network.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide::layout {
namespace {

using Kind = BufferOrigin::Kind;
constexpr std::int32_t kStart = BufferOrigin::kStart;

// Buffers and events against the bytes in use at the start and during each step.
void agree(const Graph& graph, const Plan& plan) {
  const Timeline timeline = simulate(graph, plan);
  REQUIRE_FALSE(timeline.violation);
  const Lifetimes found = lifetimes(graph, plan);
  REQUIRE(found.origins.size() == found.buffers.size());

  std::vector<Bytes> live(std::max<std::size_t>(1, plan.steps.size()));
  Bytes start;
  for (std::size_t i = 0; i < found.buffers.size(); ++i) {
    const Buffer& buffer = found.buffers[i];
    CHECK(buffer.bytes > Bytes(0));
    REQUIRE(0 <= buffer.begin);
    REQUIRE(buffer.begin < buffer.end);
    REQUIRE(buffer.end <= static_cast<std::int64_t>(live.size()));
    CHECK(buffer.begin == std::max(0, found.origins[i].step));
    for (std::int64_t at = buffer.begin; at < buffer.end; ++at)
      live[static_cast<std::size_t>(at)] += buffer.bytes;
    if (found.origins[i].step == kStart) start += buffer.bytes;
  }
  CHECK(start == timeline.start);
  if (plan.steps.empty())
    CHECK(live[0] == timeline.start);
  else
    CHECK(live == timeline.live);
  CHECK(*std::max_element(live.begin(), live.end()) == timeline.cost.peak);

  // The events: in the order of the steps, each buffer once, and the same peak.
  std::vector<int> seen(found.buffers.size(), 0);
  Bytes now, most;
  std::int32_t step = kStart;
  std::size_t next = 0;
  for (const MemoryEvent& event : found.events) {
    CHECK(event.step >= step);
    step = event.step;
    const auto buffer = static_cast<std::size_t>(event.buffer);
    if (event.kind == MemoryEvent::Kind::allocate) {
      CHECK(buffer == next++);
      CHECK(found.origins[buffer].step == step);
      now += found.buffers[buffer].bytes;
    } else {
      CHECK(seen[buffer] == 1);
      CHECK(found.buffers[buffer].end == step + 1);
      now -= found.buffers[buffer].bytes;
    }
    ++seen[buffer];
    most = std::max(most, now);
  }
  CHECK(next == found.buffers.size());
  CHECK(most == timeline.cost.peak);
}

TEST_CASE("lifetimes: of random plans of every technique they add up to the simulator's bytes") {
  for (int seed = 0; seed < samples(1500); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    RandomGraphSettings settings;
    settings.ops = random.below(13);
    settings.on_host = random.chance(0.5) ? 0.3 : 0;
    const Graph graph = random_graph(random, settings);
    agree(graph, random_plan(random, graph,
                             {.transfers = settings.on_host > 0 || random.chance(0.5),
                              .restless = random.uniform()}));
    if (!graph.has_tensors_on_host())
      agree(graph, plan_from_sequence(graph, graph.order(), InPlace::where_possible));
  }
}

TEST_CASE("lifetimes: of plans with transforms, in the indices of the file") {
  Random random(5);
  for (int round = 0; round < samples(20); ++round) {
    CAPTURE(round);
    Classifier classifier = Classifier::random(random);
    classifier.barrier = true;
    classifier.batch = random.between(2, 4) * 3;
    const Graph graph = step_of(classifier);
    std::vector<Transform> transforms{hoist_of(graph)};
    transforms.emplace_back(
        split_along(apply_transforms(graph, transforms), {{TensorId(0), 0}}, random.between(2, 3)));
    const TransformedGraph made = apply_transforms(graph, transforms);
    const Plan plan = random_plan(random, made.graph);
    const Plan on_file = on_original(made, transforms, plan);
    agree(graph, on_file);
    const Lifetimes direct = lifetimes(made.graph, plan);
    const Lifetimes filed = lifetimes(graph, on_file);
    CHECK(direct.buffers == filed.buffers);
    CHECK(direct.events == filed.events);
    for (std::size_t i = 0; i < direct.origins.size(); ++i)
      if (const TensorId id = direct.origins[i].tensor; id.valid())
        CHECK(filed.origins[i].tensor == made.tensor_index[id]);
  }
}

TEST_CASE("lifetimes: a step in place keeps the buffer, workspace has one of its own") {
  // t0 (10, input) -> op 0 -> t1 (20) -> op 1, in place, workspace 7 -> t2 (20) -> op 2 -> t3 (0)
  const Graph graph = Sketch({10, 20, 20, 0})
                          .op({0}, {1})
                          .op({1}, {2})
                          .in_place({{1, 2}})
                          .workspace(7)
                          .op({2}, {3})
                          .keep({3})
                          .resident(3)
                          .graph();
  const Lifetimes found = lifetimes(graph, steps("c0 i1,1 c2 f2"));
  CHECK(found.buffers ==
        std::vector<Buffer>{
            {0, 4, Bytes(3)}, {0, 4, Bytes(10)}, {0, 4, Bytes(20)}, {1, 2, Bytes(7)}});
  CHECK(found.origins == std::vector<BufferOrigin>{{Kind::resident, kStart, TensorId()},
                                                   {Kind::input, kStart, TensorId(0)},
                                                   {Kind::computed, 0, TensorId(1)},
                                                   {Kind::workspace, 1, TensorId()}});
  const auto allocate = MemoryEvent::Kind::allocate, free = MemoryEvent::Kind::free;
  CHECK(found.events == std::vector<MemoryEvent>{{allocate, 0, kStart},
                                                 {allocate, 1, kStart},
                                                 {allocate, 2, 0},
                                                 {allocate, 3, 1},
                                                 {free, 3, 1},
                                                 {free, 2, 3}});
}

TEST_CASE("lifetimes: what comes back from the host is a new buffer, what is at home there none") {
  const Graph graph = Sketch({10, 20, 5}).op({0}, {1}).op({1}, {2}).on_host({0}).keep({2}).graph();
  Plan plan = steps("p0 c0 f0 o1 f1 p1 c1");
  const Lifetimes found = lifetimes(graph, plan);
  CHECK(found.origins == std::vector<BufferOrigin>{{Kind::fetched, 0, TensorId(0)},
                                                   {Kind::computed, 1, TensorId(1)},
                                                   {Kind::fetched, 5, TensorId(1)},
                                                   {Kind::computed, 6, TensorId(2)}});
  CHECK(found.buffers ==
        std::vector<Buffer>{
            {0, 3, Bytes(10)}, {1, 5, Bytes(20)}, {5, 7, Bytes(20)}, {6, 7, Bytes(5)}});
}

TEST_CASE("lifetimes: a plan that breaks a rule is a fault of the caller") {
  const Graph graph = Sketch({10, 20}).op({0}, {1}).releasable({0}).graph();
  CHECK_THROWS_AS(lifetimes(graph, steps("f1 c0")), InternalError);
  CHECK_THROWS_AS(lifetimes(graph, steps("c0 c0")), InternalError);
}

}  // namespace
}  // namespace lowtide::layout

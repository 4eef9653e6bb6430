// Every rule of docs/reference/cost.md for a single step and for the end: a plan that breaks it
// alone, and next to it one that does not. Peaks by hand.
#include <doctest/doctest.h>

#include "support/judge.h"
#include "support/print.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

// t0 (10, input) -> op 0 -> t1 (20) -> op 1 -> t2 (30) -> op 2, which reads t1 too -> t3 (5, kept)
Sketch chain() {
  return Sketch({10, 20, 30, 5}).op({0}, {1}, 10).op({1}, {2}, 100).op({1, 2}, {3}, 7).keep({3});
}

// op 0 makes t1 and t2; op 1 reads t1, op 2 reads t2 and op 1's t3
Sketch twins() {
  return Sketch({10, 20, 20, 5, 5}).op({0}, {1, 2}, 4).op({1}, {3}).op({2, 3}, {4}).keep({4});
}

// op 0 changes the input t0 in place; op 1 makes t1
Sketch state() { return Sketch({20, 1}).op({0}, {}, 10).mutates({0}).op({}, {1}, 50); }

TEST_CASE("peak: what is live, outputs and workspace") {
  // 10; + 20; + 30; + 5
  CHECK(accept(chain().graph(), steps("c0 c1 c2")) == Cost{Ticks(117), Bytes(65), Bytes(0)});
  const Graph scratch =
      Sketch({10, 20, 5}).op({0}, {1}).workspace(100).op({1}, {2}).workspace(90).keep({2}).graph();
  // op 0: 10 + 20 + 100; op 1: 30 + 5 + 90
  CHECK(accept(scratch, steps("c0 c1")).peak == Bytes(130));
  CHECK(accept(chain().resident(1000).graph(), steps("c0 c1 c2")).peak == Bytes(1065));
}

TEST_CASE("peak: a free counts only from the next step") {
  // 60 with t2; freed and made again; + 5
  CHECK(accept(chain().graph(), steps("c0 c1 f2 c1 c2 f2 f1")).peak == Bytes(65));
  // All that goes before op 1 has gone: 10 + 20 + 30, never more
  CHECK(accept(chain().keep({}).graph(), steps("c0 c1 c2 f3 f1 f2")).peak == Bytes(65));
}

TEST_CASE("peak: the start counts") {
  const Graph graph = Sketch({50, 8}).op({}, {1}).releasable({0}).keep({1}).graph();
  CHECK(accept(graph, steps("f0 c0")).peak == Bytes(50));
  CHECK(accept(Sketch({50}).graph(), steps("")).peak == Bytes(50));
  CHECK(accept(Sketch({}).graph(), steps("")) == Cost{});
}

TEST_CASE("peak: an input listed twice counts once") {
  CHECK(accept(Sketch({10, 20}).op({0, 0}, {1}).keep({1}).graph(), steps("c0")).peak == Bytes(30));
}

TEST_CASE("peak: recomputation brings all outputs back") {
  // 10; 50; 55 after op 1; 15 left; 55; t1 freed again; + 5
  CHECK(accept(twins().graph(), steps("c0 c1 f1 f2 c0 f1 c2")) ==
        Cost{Ticks(10), Bytes(55), Bytes(0)});
}

TEST_CASE("peak: a prefetch takes its bytes at its step") {
  const Graph graph =
      Sketch({20, 1, 1, 1}).op({0}, {1}, 10).op({1}, {2}, 100).op({0, 2}, {3}, 7).keep({3}).graph();
  // 21; t0 away: 1, 2; back: 22; + 1
  CHECK(accept(graph, steps("o0 c0 f0 c1 p0 c2")).peak == Bytes(23));
  CHECK(accept(graph, steps("o0 c0 f0 c1 p0 f1 c2")).peak == Bytes(22));
}

TEST_CASE("compute: inputs must be live") {
  refuse(chain().graph(), steps("c1"), 0, "input tensor 1 is not live");
  refuse(chain().graph(), steps("c0 c1 f1 c2"), 3, "input tensor 1 is not live");
  const Graph weightless = Sketch({0, 0, 0}).op({0}, {1}).op({1}, {2}).keep({2}).graph();
  refuse(weightless, steps("c0 f1 c1"), 2, "input tensor 1 is not live");
}

TEST_CASE("compute: no output may be live") {
  refuse(chain().graph(), steps("c0 c0 c1 c2"), 1, "output tensor 1 is still live");
  refuse(twins().graph(), steps("c0 c1 f1 c0 c2"), 3, "output tensor 2 is still live");
  const Graph weightless = Sketch({0, 0, 0}).op({0}, {1}).op({1}, {2}).keep({2}).graph();
  refuse(weightless, steps("c0 c0 c1"), 1, "still live");
}

TEST_CASE("compute: an op that is not recomputable runs once") {
  const Graph effect = Sketch({10, 20, 5}).op({0}, {1}).once().op({1}, {2}).keep({2}).graph();
  accept(effect, steps("c0 c1 f1"));
  refuse(effect, steps("c0 f1 c0 c1"), 2, "only once");
  const Graph no_output = Sketch({10}).op({0}, {}).graph();
  accept(no_output, steps("c0"));
  refuse(no_output, steps("c0 c0"), 1, "only once");
}

TEST_CASE("compute: a barrier runs once, whatever the graph says") {
  GraphBuilder builder;
  Tensor tensor;
  tensor.bytes = Bytes(1);
  const TensorId made = builder.add_tensor(tensor);
  Op barrier;
  barrier.kind = kBarrierKind;
  barrier.recomputable = true;
  builder.add_op(barrier, std::vector<TensorId>{}, {made});
  const Graph graph = builder.build();
  accept(graph, steps("c0 f0"));
  refuse(graph, steps("c0 f0 c0"), 2, "only once");
}

TEST_CASE("compute: after holds for first computations, and asks for the op alone") {
  const Graph graph = Sketch({10, 20, 5}).op({0}, {1}).op({0}, {2}).after({0}).keep({1, 2}).graph();
  refuse(graph, steps("c1 c0"), 0, "op 0 must come first");
  accept(graph, steps("c0 f1 c1 c0"));
}

TEST_CASE("compute: a mutated tensor has no further reader") {
  const Graph graph =
      Sketch({10, 5, 6}).op({0}, {1}).mutates({0}).op({0}, {2}).keep({1, 2}).order({1, 0}).graph();
  accept(graph, steps("c1 c0"));
  refuse(graph, steps("c0 c1"), 1, "changed in place");
  refuse(graph, steps("c1 c0 f2 c1"), 3, "changed in place");
  refuse(graph, steps("c1 c0 f1 c0"), 3, "only once");
}

TEST_CASE("compute: a mutated tensor has no reader, also after recomputation") {
  const Graph graph = Sketch({10, 20, 5})
                          .op({0}, {1})
                          .op({1}, {})
                          .mutates({1})
                          .op({1}, {2})
                          .keep({2})
                          .order({0, 2, 1})
                          .graph();
  accept(graph, steps("c0 c2 c1"));
  refuse(graph, steps("c0 c1 f1 c0 c2"), 4, "changed in place");
}

TEST_CASE("compute: recomputation must not undo the mutation of an output") {
  Sketch sketch = Sketch({10, 20, 4}).op({0}, {1, 2}, 3).op({1}, {}, 6).mutates({1});
  const Graph kept = sketch.keep({1, 2}).graph();
  refuse(kept, steps("c0 c1 f1 f2 c0"), 4, "kept by the graph");
  CHECK(accept(kept, steps("c0 f1 f2 c0 c1")).duration == Ticks(12));
  // t1 is not kept: its maker may run again for t2
  CHECK(accept(sketch.keep({2}).graph(), steps("c0 c1 f1 f2 c0")).duration == Ticks(12));
}

TEST_CASE("free: the tensor is live and can be restored") {
  refuse(chain().graph(), steps("f1 c0 c1 c2"), 0, "not live");
  refuse(chain().graph(), steps("c0 c1 c2 f2 f2"), 4, "not live");
  refuse(chain().graph(), steps("c0 f0 c1 c2"), 1, "not releasable");
  CHECK(accept(chain().releasable({0}).graph(), steps("c0 f0 c1 c2")).peak == Bytes(55));
  const Graph weightless = Sketch({0, 0}).op({0}, {1}).keep({1}).graph();
  refuse(weightless, steps("c0 f0"), 1, "not releasable");
}

TEST_CASE("free: a releasable input never comes back") {
  const Graph graph = Sketch({20, 1}).op({0}, {1}).releasable({0}).keep({1}).graph();
  accept(graph, steps("c0 f0"));
  refuse(graph, steps("f0 p0 c0"), 1, "no host copy");
  refuse(graph, steps("f0 c0"), 1, "not live");
}

TEST_CASE("offload needs a live tensor, prefetch one that is not live") {
  refuse(chain().graph(), steps("o1 c0 c1 c2"), 0, "not live");
  refuse(chain().graph(), steps("c0 c1 c2 f2 o2"), 4, "not live");
  refuse(chain().graph(), steps("c0 f1 p1 c1 c2"), 2, "no host copy");
  refuse(chain().graph(), steps("c0 o1 p1 c1 c2"), 2, "it is live");
}

TEST_CASE("a mutation invalidates the host copy") {
  refuse(state().graph(), steps("o0 c0 f0 c1 p0"), 2, "not releasable");
  CHECK(accept(state().graph(), steps("o0 c0 o0 f0 c1 p0")).host_peak == Bytes(20));
  const Graph produced =
      Sketch({20, 6}).op({}, {0}).op({0}, {}).mutates({0}).op({}, {1}).keep({0, 1}).graph();
  refuse(produced, steps("c0 o0 c1 f0 c2 p0"), 5, "no host copy");
  accept(produced, steps("c0 c1 o0 f0 c2 p0"));
  refuse(state().releasable({0}).graph(), steps("o0 c0 f0 p0 c1"), 3, "no host copy");
  accept(state().releasable({0}).graph(), steps("o0 c0 f0 c1"));
}

TEST_CASE("unknown ops and tensors are refused") {
  refuse(chain().graph(), steps("c3"), 0, "there is no op 3");
  refuse(chain().graph(), steps("c0 f4"), 1, "there is no tensor 4");
  for (const StepKind kind :
       {StepKind::compute, StepKind::free, StepKind::offload, StepKind::prefetch}) {
    Plan plan;
    plan.steps.push_back({kind, -1});
    // Not through the judge: a plan file has no negative numbers.
    const Timeline timeline = simulate(chain().graph(), plan);
    REQUIRE(timeline.violation);
    CHECK(timeline.violation->reason.find("there is no") != std::string::npos);
  }
}

TEST_CASE("the end: all computed, outputs and inputs live") {
  refuse(chain().graph(), steps("c0 c1"), 2, "op 2 was never computed");
  refuse(Sketch({10}).op({0}, {}).graph(), steps(""), 0, "never computed");
  refuse(chain().graph(), steps("c0 c1 c2 f3"), 4, "output tensor 3 is not live");
  accept(chain().keep({}).graph(), steps("c0 c1 c2 f3 f2 f1"));
  const Graph graph = Sketch({20, 1}).op({0}, {1}).keep({1}).graph();
  refuse(graph, steps("o0 c0 f0"), 3, "input tensor 0 is not live");
  accept(graph, steps("o0 c0 f0 p0"));
  const Graph both = Sketch({20, 1}).op({0}, {1}).releasable({0}).keep({0, 1}).graph();
  refuse(both, steps("c0 f0"), 2, "output tensor 0 is not live");
}

}  // namespace
}  // namespace lowtide

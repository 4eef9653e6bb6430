// Steps in place, by hand: what they take, what they leave, and what is refused.
#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"

#include "support/judge.h"
#include "support/print.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

// t0 (10, input) -> op 0 -> t1 (20) -> op 1, which can write t2 (20) over it -> op 2 -> t3 (5,
// kept)
Sketch chain() {
  return Sketch({10, 20, 20, 5})
      .op({0}, {1}, 10)
      .op({1}, {2}, 100)
      .in_place({{1, 2}})
      .op({2}, {3}, 7)
      .keep({3});
}

// op 2 adds t1 and t2 (20 each) and can write t3 over either
Sketch sum() {
  return Sketch({10, 20, 20, 20})
      .op({0}, {1})
      .op({0}, {2})
      .op({1, 2}, {3})
      .in_place({{1, 3}, {2, 3}})
      .keep({3});
}

TEST_CASE("in place: the output takes no bytes of its own") {
  CHECK(accept(chain().graph(), steps("c0 c1 f1 c2")).peak == Bytes(50));
  CHECK(accept(chain().graph(), steps("c0 i1,1 c2")) == Cost{Ticks(117), Bytes(35), Bytes(0)});
  // 30, workspace 7 on top of it
  const Graph scratch =
      Sketch({10, 20, 20}).op({0}, {1}).op({1}, {2}).in_place({{1, 2}}).workspace(7).graph();
  CHECK(accept(scratch, steps("c0 i1,1 f2")).peak == Bytes(37));
}

TEST_CASE("in place: an overwritten tensor is not live, and may be recomputed") {
  refuse(chain().graph(), steps("c0 i1,1 f1 c2"), 2, "not live");
  CHECK(accept(chain().graph(), steps("c0 i1,1 c0 f1 c2")).duration == Ticks(127));
  refuse(sum().graph(), steps("c0 c1 i2,1 f1"), 3, "not live");
  CHECK(accept(sum().graph(), steps("c0 c1 i2,2 f1")).peak == Bytes(50));
}

TEST_CASE("in place: only pairs of the graph, at most one for an output") {
  refuse(sum().graph(), steps("c0 c1 i2,1,2"), 2, "takes the place of two tensors");
  refuse(sum().graph(), steps("c0 c1 i2,0"), 2, "cannot write in place of tensor 0");
  refuse(sum().graph(), steps("c0 i1,0"), 1, "cannot write in place of");
  refuse(sum().graph(), steps("c0 c1 i2,9"), 2, "there is no tensor 9");
  refuse(chain().graph(), steps("i1,1"), 0, "is not live");  // not live
}

TEST_CASE("in place: tensors that must stay live are not overwritten") {
  refuse(chain().keep({1, 3}).graph(), steps("c0 i1,1 c2"), 1, "an output of the graph");
  const auto input = [] { return Sketch({20, 20}).op({0}, {1}).in_place({{0, 1}}).keep({1}); };
  refuse(input().graph(), steps("i0,0"), 0, "not releasable");
  refuse(input().releasable({0}).stays({0}).graph(), steps("i0,0"), 0, "the caller holds");
  CHECK(accept(input().releasable({0}).graph(), steps("i0,0")).peak == Bytes(20));
}

TEST_CASE("in place: the op waits for copies of what it overwrites") {
  // Out: 5 + 10 from 10 on; the op runs from 25 to 125, without its pair from 10.
  CHECK(accept(chain().graph(), steps("c0 o1 i1,1 c2")).duration == Ticks(132));
  CHECK(accept(chain().graph(), steps("c0 o1 c1 c2")).duration == Ticks(117));
  // The host copy stays good.
  CHECK(accept(chain().graph(), steps("c0 o1 i1,1 p1 f1 c2")).host_peak == Bytes(20));
}

TEST_CASE("stays: copied, never freed") {
  const Graph graph = Sketch({10, 5}).op({0}, {1}).stays({0}).keep({1}).graph();
  CHECK(accept(graph, steps("o0 c0")).host_peak == Bytes(10));
  refuse(graph, steps("c0 o0 f0"), 2, "the caller holds it");
}

TEST_CASE(
    "home: a tensor at home on the host has a host copy at start and end, and is not live at the "
    "start") {
  const auto at_home = [] { return Sketch({10, 5}).op({0}, {1}).on_host({0}).keep({1}); };
  refuse(at_home().graph(), steps("c0"), 0, "is not live");
  const Cost cost = accept(at_home().graph(), steps("p0 c0 f0"));
  CHECK(cost.peak == Bytes(15));
  CHECK(cost.host_peak == Bytes(10));
  CHECK(own_peak(at_home().graph()) == Bytes(15));
  const Graph updated = Sketch({10}).op({0}, {}).mutates({0}).on_host({0}).graph();
  refuse(updated, steps("p0 c0"), 2, "whose home is the host");  // the end
  CHECK(accept(updated, steps("p0 c0 o0 f0")).peak == Bytes(10));
}

TEST_CASE("baseline peak: nothing in place") {
  CHECK(own_peak(chain().graph()) == Bytes(50));
  CHECK(simulate(chain().graph(), plan_from_sequence(chain().graph(), chain().graph().order()))
            .cost.peak == Bytes(35));
}

TEST_CASE("plan_from_sequence: in place at the last use of an input") {
  const Graph graph = sum().graph();
  const std::vector<OpId> once{OpId(0), OpId(1), OpId(2)};
  CHECK(plan_from_sequence(graph, once).steps == steps("c0 c1 i2,1 f2").steps);
  CHECK(plan_from_sequence(graph, once, InPlace::never).steps == steps("c0 c1 c2 f1 f2").steps);
  // t1 is read again afterwards, so the other side goes.
  const Graph read_again = Sketch({10, 20, 20, 20, 1})
                               .op({0}, {1})
                               .op({0}, {2})
                               .op({1, 2}, {3})
                               .in_place({{1, 3}, {2, 3}})
                               .op({1, 3}, {4})
                               .keep({4})
                               .graph();
  CHECK(plan_from_sequence(read_again, read_again.order()).steps ==
        steps("c0 c1 i2,2 c3 f1 f3").steps);
}

}  // namespace
}  // namespace lowtide

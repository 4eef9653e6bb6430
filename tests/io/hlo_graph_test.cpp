// What of a module becomes what of a graph.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/device/cards.h"
#include "lowtide/device/roofline.h"
#include "lowtide/plan/plan.h"
#include "lowtide/sim/simulate.h"

#include "io/hlo_module.h"

namespace lowtide {
namespace {

using Names = std::vector<std::string>;

Bytes peak_in_place(const Graph& graph) {
  const Timeline timeline = simulate(graph, plan_from_sequence(graph, graph.order()));
  CHECK_FALSE(timeline.violation);
  return timeline.cost.peak;
}

std::int64_t price(std::int64_t operations, std::int64_t bytes) {
  return kernel_ns(*find_built_in_device(io::kHloDevice), operations, "f32", bytes);
}

TEST_CASE("hlo: tuples, their elements and bitcasts are other names of the same arrays") {
  const Graph graph = hlo_graph(hlo_module(R"(
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  i = (f32[4], f32[4]) tuple(x, a)
  o = (f32[4], (f32[4], f32[4])) tuple(a, i)
  b = (f32[4], (f32[4], f32[4])) opt-barrier(o)
  e = (f32[4], f32[4]) get-tuple-element(b), index=1
  f = f32[4] get-tuple-element(e), index=1
  v = f32[2,2] bitcast(f)
  ROOT r = f32[2,2] negate(v))"));
  CHECK(graph.op_count() == 2);
  CHECK(input_names(graph, OpId(1)) == Names{"a"});
}

TEST_CASE("hlo: a fusion is one op, priced by what is in it") {
  const std::string fused = R"(
%fused (p: f32[8,16], q: f32[16,4]) -> f32[8,4] {
  %p = f32[8,16] parameter(0)
  %q = f32[16,4] parameter(1)
  %d = f32[8,4] dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %t = f32[8,4] tanh(%d)
})";
  const Graph graph = hlo_graph(hlo_module(R"(
  %x = f32[8,16] parameter(0)
  %y = f32[16,4] parameter(1)
  ROOT %f = f32[8,4] fusion(%x, %y), kind=kOutput, calls=%fused, metadata={op_name="jit(f)/transpose(jvp(g))/dot"})",
                                           fused));
  const Op& op = graph.op(OpId(0));
  CHECK(op.attributes == R"({"flops":1056,"kind":"kOutput"})");  // 2 * 8 * 4 * 16 + 8 * 4
  CHECK(op.time.count() == price(1056, std::int64_t{4} * (128 + 64 + 32)));
  CHECK(op.phase == "backward");
  CHECK(op.origin == "jit(f)/transpose(jvp(g))/dot");
}

TEST_CASE("hlo: a fusion that updates or reads a slice moves the slice") {
  const std::string fused = R"(
update (b: f32[100,8], u: f32[1,8], i: s32[]) -> f32[100,8] {
  b = f32[100,8] parameter(0)
  u = f32[1,8] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  ROOT d = f32[100,8] dynamic-update-slice(b, u, i, z)
})";
  const Graph graph = hlo_graph(hlo_module(R"(
  x = f32[100,8] parameter(0)
  u = f32[1,8] parameter(1)
  i = s32[] parameter(2)
  c = f32[100,8] copy(x)
  ROOT f = f32[100,8] fusion(c, u, i), kind=kLoop, calls=update)",
                                           fused));
  const OpId op = op_named(graph, "f");
  CHECK(graph.time(op).count() == price(0, 32 + 4 + 32));
  CHECK(pair_names(graph, op) == Names{"c->f"});
}

TEST_CASE("hlo: what is read number by number is overwritten, what is not stays") {
  const std::string fused = R"(
f (p: f32[8,8], q: f32[8,8]) -> f32[8,8] {
  p = f32[8,8] parameter(0)
  q = f32[8,8] parameter(1)
  t = f32[8,8] transpose(q), dimensions={1,0}
  ROOT a = f32[8,8] add(p, t)
})";
  const Graph graph = hlo_graph(hlo_module(R"(
  x = f32[8,8] parameter(0)
  a = f32[8,8] negate(x)
  b = f32[8,8] exponential(x)
  c = f32[8,8] fusion(a, b), kind=kLoop, calls=f
  d = f32[8,8] fusion(c, c), kind=kLoop, calls=f
  e = f32[8,8]{0,1} copy(d)
  ROOT g = s32[8,8]{0,1} convert(e))",
                                           fused));
  CHECK(pair_names(graph, op_named(graph, "a")).empty());  // a parameter that is not donated
  CHECK(pair_names(graph, op_named(graph, "c")) == Names{"a->c"});
  CHECK(pair_names(graph, op_named(graph, "d")).empty());  // read in both ways
  CHECK(pair_names(graph, op_named(graph, "e")).empty());  // another layout
  CHECK(pair_names(graph, op_named(graph, "g")).empty());  // another number type
}

const std::string kLoop = R"(
body (c: (s32[], f32[64], f32[64], f32[64])) -> (s32[], f32[64], f32[64], f32[64]) {
  c = (s32[], f32[64], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  v = f32[64] get-tuple-element(c), index=1
  k = f32[64] get-tuple-element(c), index=2
  w = f32[64] get-tuple-element(c), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  a = f32[64] sort(v), dimensions={0}
  b = f32[64] reverse(a), dimensions={0}
  s = f32[64] add(b, k)
  ROOT r = (s32[], f32[64], f32[64], f32[64]) tuple(next, s, k, v)
}
condition (c: (s32[], f32[64], f32[64], f32[64])) -> pred[] {
  c = (s32[], f32[64], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(10)
  ROOT less = pred[] compare(i, n), direction=LT
})";

TEST_CASE("hlo: a while carries in place; its body's temporaries are workspace") {
  const std::string entry = R"(
  x = f32[64] parameter(0)
  z = s32[] constant(0)
  i = s32[] copy(z)
  a = f32[64] negate(x)
  b = f32[64] exponential(x)
  t = (s32[], f32[64], f32[64], f32[64]) tuple(i, a, x, b)
  w = (s32[], f32[64], f32[64], f32[64]) while(t), condition=condition, body=body)";
  const std::string counted = R"(, backend_config={"known_trip_count":{"n":"10"}}
  ROOT r = f32[64] get-tuple-element(w), index=1)";
  const Graph graph = hlo_graph(hlo_module(entry + counted, kLoop));
  const OpId loop = op_named(graph, "w");
  CHECK(pair_names(graph, loop) == Names{"i->w{0}", "a->w{1}", "b->w{3}"});
  CHECK_FALSE(tensor_named(graph, "w{2}").valid());  // carried unchanged: x
  // sorted and reversed, beside the new value, which has the room of the carried one
  CHECK(graph.workspace(loop) == Bytes(512));
  const std::int64_t trip = price(1, 12) + price(std::int64_t{64} * 6, 512) + price(0, 512) +
                            price(64, 768) + price(1, 9);
  CHECK(graph.time(loop).count() == 10 * trip + price(1, 9));
  CHECK(graph.op(loop).recomputable);
}

TEST_CASE("hlo: a loop without a count is one trip, with a warning") {
  const std::string entry = R"(
  t = (s32[], f32[64], f32[64], f32[64]) parameter(0)
  ROOT w = (s32[], f32[64], f32[64], f32[64]) while(t), condition=condition, body=body)";
  const io::GraphFile file = io::read_graph_text(hlo_module(entry, kLoop), "file");
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0].find("known_trip_count") != std::string::npos);
}

TEST_CASE("hlo: a loop that counts between constants has that many trips") {
  const auto loop_time = [](const std::string& begin, const std::string& further = {}) {
    const io::GraphFile file = io::read_graph_text(hlo_module(R"(
  x = f32[64] parameter(0)
  i = s32[] constant()" + begin + R"()
  j = s32[] copy(i)
  t = (s32[], f32[64], f32[64], f32[64]) tuple(j, x, x, x)
  ROOT w = (s32[], f32[64], f32[64], f32[64]) while(t), condition=condition, body=body)" +
                                                                  further,
                                                              kLoop),
                                                   "file");
    CHECK(file.warnings.empty());
    return file.graph.time(op_named(file.graph, "w")).count();
  };
  const std::int64_t one = loop_time("9"), test = price(1, 9);
  CHECK(loop_time("0") == 10 * (one - test) + test);
  CHECK(loop_time("10") == test);
  CHECK(loop_time("0", ", backend_config={\"known_trip_count\":{\"n\":\"1\"}}") == one);
}

TEST_CASE("hlo: of branches the longest counts; a call hands on what it does not change") {
  const std::string branches = R"(
short (p: f32[64]) -> f32[64] {
  p = f32[64] parameter(0)
  ROOT n = f32[64] negate(p)
}
long (p: f32[64]) -> f32[64] {
  p = f32[64] parameter(0)
  a = f32[64] sort(p), dimensions={0}
  ROOT b = f32[64] reverse(a), dimensions={0}
}
both (p: f32[64], q: f32[64]) -> (f32[64], f32[64]) {
  p = f32[64] parameter(0)
  q = f32[64] parameter(1)
  n = f32[64] negate(q)
  ROOT t = (f32[64], f32[64]) tuple(p, n)
})";
  const Graph graph = hlo_graph(hlo_module(R"(
  i = s32[] parameter(0)
  x = f32[64] parameter(1)
  c = f32[64] conditional(i, x, x), branch_computations={short, long}
  k = (f32[64], f32[64]) call(c, x), to_apply=both
  g = f32[64] get-tuple-element(k), index=0
  ROOT r = f32[64] exponential(g))",
                                           branches));
  const OpId chosen = op_named(graph, "c");
  CHECK(graph.workspace(chosen) == Bytes(256));
  CHECK(graph.time(chosen).count() == price(std::int64_t{64} * 6, 512) + price(0, 512));
  CHECK(input_names(graph, op_named(graph, "r")) == Names{"c"});
}

TEST_CASE("hlo: asynchronous pairs hold operands and result until they are done") {
  const Graph graph = hlo_graph(hlo_module(R"(
  x = f32[64] parameter(0)
  a = f32[64] negate(x)
  s = (f32[64], f32[128]) all-gather-start(a), dimensions={0}
  b = f32[64] exponential(x)
  d = f32[128] all-gather-done(s)
  c = (f32[64]{0:S(5)}, f32[64], u32[]) copy-start(b)
  h = f32[64]{0:S(5)} copy-done(c)
  r = f32[64] reduce-scatter(d), dimensions={0}
  e = f32[64] add(r, b), control-predecessors={h}
  ROOT t = (f32[64], f32[64]{0:S(5)}) tuple(e, h))"));
  const OpId start = op_named(graph, "s"), done = op_named(graph, "d");
  CHECK_FALSE(graph.op(start).recomputable);
  CHECK(graph.outputs(done).empty());
  // Collectives that run beside others, and nothing else.
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    CHECK(graph.on_network(OpId(i)) == (OpId(i) == start));
  CHECK(input_names(graph, done) == Names{"a", "s{1}"});
  CHECK(input_names(graph, op_named(graph, "r")) == Names{"s{1}"});
  REQUIRE(graph.after(op_named(graph, "r")).size() == 1);
  CHECK(graph.after(op_named(graph, "r"))[0] == done);
  CHECK(graph.after(op_named(graph, "e"))[0] == op_named(graph, "h"));
  CHECK(graph.bytes(tensor_named(graph, "c{0}")) == Bytes(0));  // in host memory
}

TEST_CASE("hlo: donated parameters may be freed, and their outputs written over them") {
  const std::string entry = R"(
  p = f32[64] parameter(0)
  g = f32[64] parameter(1)
  u = f32[64] add(p, g)
  l = f32[64] negate(g)
  ROOT t = (f32[64], f32[64]) tuple(u, l))";
  const std::string text =
      hlo_module(entry, {}, ", input_output_alias={ {0}: (0, {}, may-alias) }");
  const Graph graph = hlo_graph(text);
  CHECK(graph.releasable(tensor_named(graph, "p")));
  CHECK(graph.stays(tensor_named(graph, "g")));
  CHECK(pair_names(graph, op_named(graph, "u")) == Names{"p->u"});
  CHECK(peak_in_place(graph) == Bytes(std::int64_t{3} * 256));
  // the buffer of u is that of p, and l has its own from the start
  const Graph held = hlo_graph(text, {.outputs_from_start = true});
  CHECK(held.stays(tensor_named(held, "p")));
  CHECK(held.bytes(tensor_named(held, "u")) == Bytes(0));
  CHECK(held.input_bytes() == Bytes(std::int64_t{3} * 256));
  CHECK(peak_in_place(held) == Bytes(std::int64_t{3} * 256));
  const Graph donor = hlo_graph(hlo_module(entry, {}, ", buffer_donor={ (1, {}) }"));
  CHECK(donor.releasable(tensor_named(donor, "g")));
}

TEST_CASE("hlo: what draws, talks or has effects does not run twice") {
  const std::string body = R"(
draws (p: f32[]) -> f32[4] {
  p = f32[] parameter(0)
  ROOT r = f32[4] rng(p, p), distribution=rng_uniform
})";
  const Graph graph = hlo_graph(hlo_module(R"(
  x = f32[4] parameter(0)
  s = f32[] parameter(1)
  a = f32[4] all-reduce(x)
  b = f32[4] custom-call(x), custom_call_target="print", custom_call_has_side_effect=true
  c = f32[4] custom-call(x), custom_call_target="pure"
  d = f32[4] call(s), to_apply=draws
  i = u32[] partition-id()
  ROOT t = (f32[4], f32[4], f32[4], f32[4], u32[]) tuple(a, b, c, d, i))",
                                           body));
  for (const char* once : {"a", "b", "r"}) CHECK_FALSE(graph.recomputable(op_named(graph, once)));
  CHECK(graph.recomputable(op_named(graph, "c")));
}

}  // namespace
}  // namespace lowtide

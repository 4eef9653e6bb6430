// What XLA's GPU compiler writes: command buffers, library calls, asynchronous pairs. The modules
// are fuzz/hlo_seeds/gpu*.hlo.txt.
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/device/cards.h"
#include "lowtide/device/roofline.h"
#include "lowtide/io/text_file.h"
#include "lowtide/plan/plan.h"
#include "lowtide/sim/simulate.h"

#include "io/hlo_module.h"

namespace lowtide {
namespace {

Graph of_file(const std::string& name) {
  const std::string folder = std::string(LOWTIDE_SOURCE_DIR) + "/tests/fuzz/hlo_seeds/";
  const io::HloOptions options{.device = *find_built_in_device("h100")};
  Graph graph = hlo_graph(io::read_text_file(folder + name), options);
  CHECK_FALSE(simulate(graph, own_plan(graph)).violation);
  return graph;
}

std::string attributes(const Graph& graph, const std::string& op) {
  return graph.op(op_named(graph, op)).attributes;
}

TEST_CASE("hlo: calls of a GPU's libraries are priced by what they compute") {
  const Graph graph = of_file("gpu.hlo.txt");
  CHECK(attributes(graph, "cublas-gemm.4").starts_with(R"({"flops":4294967296,)"));
  CHECK(attributes(graph, "cudnn-conv.1").starts_with(R"({"flops":603979776,)"));
  CHECK(attributes(graph, "fmha").starts_with(R"({"flops":4294967296,)"));
  CHECK(attributes(graph, "gemm_fusion_dot.7").starts_with(R"({"flops":4294967296,)"));
  CHECK(pair_names(graph, op_named(graph, "cublas-gemm.4")) ==
        std::vector<std::string>{"w->cublas-gemm.4{0}"});
}

TEST_CASE("hlo: a command buffer stands for its instructions") {
  const Graph graph = of_file("gpu.hlo.txt");
  CHECK(op_named(graph, "call") == OpId());
  CHECK(graph.op(OpId(0)).name == "wrapped_convert");
  CHECK(input_names(graph, op_named(graph, "gemm_fusion_dot.7")) ==
        std::vector<std::string>{"x", "wrapped_convert"});
  CHECK(input_names(graph, op_named(graph, "all-reduce-start.2")) ==
        std::vector<std::string>{"input_reduce"});
}

TEST_CASE("hlo: a computation with two callers is called") {
  const std::string twice = R"(
deep (p: f32[4]) -> f32[4] {
  p = f32[4] parameter(0)
  ROOT q = f32[4] sqrt(p)
}
twice (p: f32[4]) -> f32[4] {
  p = f32[4] parameter(0)
  ROOT q = f32[4] negate(p)
}
outer (p: f32[4], q: f32[4]) -> f32[4] {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] call(q), to_apply=twice
  b = f32[4] call(a), to_apply=deep
  ROOT s = f32[4] add(b, p)
})";
  const Graph graph = hlo_graph(hlo_module(R"(
  x = f32[4] parameter(0)
  y = f32[4] call(x), to_apply=twice
  z = f32[4] call(x, y), to_apply=outer
  ROOT r = f32[4] exponential(z))",
                                           twice));
  std::vector<std::string> names;
  for (const OpId op : graph.order()) names.push_back(graph.op(op).name);
  CHECK(names == std::vector<std::string>{"y", "a", "q", "s", "r"});
  CHECK(input_names(graph, op_named(graph, "s")) == std::vector<std::string>{"q", "x"});
}

TEST_CASE("hlo: what a start returns of its operands is not moved again") {
  const Device& device = *find_built_in_device("h100");
  const Graph graph = of_file("gpu-async.hlo.txt");
  CHECK(attributes(graph, "custom-call-start").starts_with(R"({"flops":524288,)"));
  CHECK(attributes(graph, "fusion-start").starts_with(R"({"flops":1024,)"));
  CHECK(graph.time(op_named(graph, "fusion-start")).count() ==
        kernel_ns(device, 1024, "f32", std::int64_t{2} * 4096));
  // 4 MiB over the link to the host
  const Graph copies = of_file("gpu.hlo.txt");
  CHECK(copies.time(op_named(copies, "copy-start.1")).count() ==
        device.host_link->latency_ns + 83'887);
}

}  // namespace
}  // namespace lowtide

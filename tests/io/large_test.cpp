// 100,000 ops and 300,000 links. The limits are loose, for slow machines and sanitizers: what is
// quadratic anywhere misses them by far. The benchmark has the real times.
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/graph/builder.h"
#include "lowtide/graph/hash.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

#include "support/scale.h"

namespace lowtide {
namespace {

constexpr auto kOps = static_cast<std::size_t>(sanitized(10'000, 100'000));

Graph large_graph() {
  Random random(1);
  GraphBuilder builder;
  builder.reserve(kOps, kOps);
  for (std::size_t i = 0; i < kOps; ++i) {
    Tensor tensor;
    tensor.name = "tensor_" + std::to_string(i);
    tensor.bytes = Bytes(random.between(1, 1 << 20));
    tensor.shape = {tensor.bytes.count() / 4, 2};
    tensor.dtype = "bf16";
    builder.add_tensor(std::move(tensor));
    Op op;
    op.name = "op_" + std::to_string(i);
    op.kind = "aten.mm";
    op.origin = "transformer.h." + std::to_string(i / 1000) + ".attn.c_proj";
    op.attributes = R"({"axis":[-1],"keepdim":true})";
    op.time = Ticks(random.between(1, 1000));
    OpLinks links;
    for (int k = 0; i > 0 && k < 3; ++k)
      links.inputs.push_back(random.between(i < 200 ? 0 : static_cast<std::int64_t>(i) - 200,
                                            static_cast<std::int64_t>(i) - 1));
    links.outputs = {static_cast<std::int64_t>(i)};
    builder.add_op(std::move(op), links);
  }
  builder.set_outputs({static_cast<std::int64_t>(kOps) - 1});
  return builder.build();
}

// What takes more than linear time outlasts the patience of whoever runs these.
TEST_CASE("large: 100,000 ops are written, read and simulated") {
  const Graph graph = large_graph();
  const std::string text = io::write_graph(graph);
  CHECK(text.size() > 200 * kOps);
  const Graph again = io::read_graph_text(text, "file").graph;
  CHECK(own_peak(again) == own_peak(graph));
  const std::string hash = graph_hash(again);
  CHECK(hash == graph_hash(graph));

  PlanFile file;
  file.graph_hash = hash;
  file.plan = own_plan(graph);
  file.claims = {Status::optimal, graph.total_time(), own_peak(graph), graph.total_time()};
  const PlanFile plan = io::read_plan_text(io::write_plan(file), "file");
  CHECK(check_plan(graph, plan).kind == PlanVerdict::Kind::holds);
}

TEST_CASE("large: an error at the end is found") {
  std::string text = io::write_graph(large_graph());
  const std::size_t last = text.rfind("\"time\": ");
  CHECK_THROWS(io::read_graph_text(text.substr(0, last) + "\"time\": 1.5}]}", "file"));
  text.insert(last, "\"time\": \"1\", \"unknown\": 0, ");
  CHECK_THROWS(io::read_graph_text(text, "file"));
}

}  // namespace
}  // namespace lowtide

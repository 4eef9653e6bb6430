// networkx graphs: both kinds that benchmarks come in, and what people's own look like.
#include "lowtide/io/node_link.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/io/graph_json.h"
#include "lowtide/sim/simulate.h"

namespace lowtide {
namespace {

io::GraphFile read(const std::string& text) { return io::read_graph_text(text, "file"); }

std::vector<std::size_t> indices(std::span<const OpId> ids) {
  std::vector<std::size_t> result;
  for (OpId id : ids) result.push_back(id.index());
  return result;
}

using Indices = std::vector<std::size_t>;

TEST_CASE("node-link: every node is an op with one tensor") {
  const io::GraphFile file = read(R"({"directed": true, "multigraph": false,
      "graph": {"name": "g", "pos": {"0": [0, 1]}, "order": [0, 2, 1]},
      "nodes": [{"out_cost": 790, "param_cost": 0, "duration": 3, "name": 0},
                {"out_cost": 20, "param_cost": 0, "duration": 4, "name": 1},
                {"out_cost": 10, "param_cost": 0, "duration": 5, "name": 2}],
      "links": [{"0": 0, "1": 2}, {"0": 2, "1": 1}, {"0": 0, "1": 1}]})");
  const Graph& graph = file.graph;
  CHECK(file.warnings.empty());
  CHECK(graph.name() == "g");
  CHECK(graph.tick() == TickUnit::none);
  REQUIRE(graph.op_count() == 3);
  REQUIRE(graph.tensor_count() == 3);
  CHECK(graph.op(OpId(2)).name == "2");
  CHECK(graph.time(OpId(2)) == Ticks(5));
  CHECK(graph.bytes(TensorId(0)) == Bytes(790));
  CHECK(graph.producer(TensorId(1)) == OpId(1));
  CHECK(graph.inputs(OpId(1)).size() == 2);
  CHECK(graph.outputs().empty());
  CHECK(indices(graph.order()) == Indices{0, 2, 1});
  // A sink is no graph output: it goes at once. 790 + 10, then + 20.
  CHECK(own_peak(graph) == Bytes(820));
}

TEST_CASE("node-link: newer networkx, a multigraph, whole numbers as fractions") {
  const io::GraphFile file = read(R"({"directed": true, "multigraph": true, "graph": {},
      "nodes": [{"name": "conv", "backward": false, "cost_cpu": 139.0, "cost_ram": 4.0, "id": 7},
                {"label": "grad", "backward": true, "cost_cpu": 1e3, "cost_ram": 20, "id": 9}],
      "edges": [{"source": 7, "target": 9, "key": 0}, {"source": 7, "target": 9, "key": 1}]})");
  const Graph& graph = file.graph;
  CHECK(file.warnings.empty());
  CHECK(graph.op(OpId(0)).name == "conv");
  CHECK(graph.op(OpId(1)).name == "grad");
  CHECK(graph.op(OpId(0)).phase == "forward");
  CHECK(graph.op(OpId(1)).phase == "backward");
  CHECK(graph.time(OpId(0)) == Ticks(139));
  CHECK(graph.time(OpId(1)) == Ticks(1000));
  CHECK(graph.bytes(TensorId(0)) == Bytes(4));
  CHECK(graph.inputs(OpId(1)).size() == 1);
}

TEST_CASE("node-link: ids are text, integers, or lists; 1 is not \"1\"") {
  CHECK(
      read(R"({"nodes": [{"id": "a", "bytes": 1, "time": 1}, {"id": [0, 1], "bytes": 1, "time": 1}],
      "links": [{"source": "a", "target": [0, 1]}]})")
          .graph.op(OpId(1))
          .name == "[0,1]");
  CHECK(read(R"({"nodes": [{"id": 1, "bytes": 1, "time": 1}, {"id": "1", "bytes": 1, "time": 1}],
      "links": [{"source": 1, "target": "1"}]})")
            .graph.inputs(OpId(1))
            .size() == 1);
  // Links as networkx 1 wrote them: indices, which no id can be taken for.
  CHECK(read(R"({"nodes": [{"id": "a", "bytes": 1, "time": 1}, {"id": "b", "bytes": 1, "time": 1}],
      "links": [{"source": 0, "target": 1}]})")
            .graph.inputs(OpId(1))
            .size() == 1);
}

TEST_CASE("node-link: without an order, index order or the nearest that is topological") {
  const std::string nodes = R"({"nodes": [{"id": "a", "bytes": 1, "time": 1},
      {"id": "b", "bytes": 1, "time": 1}, {"id": "c", "bytes": 1, "time": 1}], "links": [)";
  const io::GraphFile listed = read(nodes + R"({"source": "a", "target": "c"}]})");
  CHECK(indices(listed.graph.order()) == Indices{0, 1, 2});
  CHECK(listed.warnings.empty());
  const io::GraphFile sorted = read(nodes + R"({"source": "c", "target": "a"}]})");
  CHECK(indices(sorted.graph.order()) == Indices{1, 2, 0});
  REQUIRE(sorted.warnings.size() == 1);
  CHECK(sorted.warnings[0] ==
        "the nodes are not in topological order: sorted, by index where free");
}

TEST_CASE("node-link: missing durations and unknown keys are reported") {
  const io::GraphFile none = read(R"({"nodes": [{"id": 0, "bytes": 1}, {"id": 1, "bytes": 1}],
      "links": [{"source": 0, "target": 1, "weight": 2}]})");
  CHECK(none.graph.total_time() == Ticks(2));
  CHECK(none.warnings ==
        std::vector<std::string>{"no node has a \"duration\": each counts as 1 tick",
                                 "unknown key, without effect: \"weight\" in \"links\""});
  const io::GraphFile some =
      read(R"({"nodes": [{"id": 0, "bytes": 1, "duration": 5, "param_cost": 3},
      {"id": 1, "bytes": 1}], "links": []})");
  CHECK(some.graph.total_time() == Ticks(5));
  CHECK(some.warnings ==
        std::vector<std::string>{"1 of the nodes have no \"duration\": it counts as 0",
                                 "unknown key, without effect: \"param_cost\" in \"nodes\""});
}

TEST_CASE("node-link: written in our format and read again") {
  const Graph graph = read(R"({"nodes": [{"id": "a", "bytes": 8, "time": 1},
      {"id": "b", "bytes": 4, "time": 2}], "links": [{"source": "b", "target": "a"}]})")
                          .graph;
  const Graph again = read(io::write_graph(graph)).graph;
  CHECK(indices(again.order()) == Indices{1, 0});
  CHECK(own_peak(again) == own_peak(graph));
}

// The published graphs themselves, where LOWTIDE_DATA names the folder that holds them.
TEST_CASE("node-link: published graphs have their published peaks") {
  const char* data = std::getenv("LOWTIDE_DATA");
  if (data == nullptr) {
    MESSAGE("skipped: LOWTIDE_DATA is not set");
    return;
  }
  const std::string folder = std::string(data) + "/moccasin/";
  constexpr std::array<std::int64_t, 4> kPeaks{46319, 146840, 284439, 608619};
  for (std::size_t i = 0; i < kPeaks.size(); ++i) {
    const io::GraphFile file = io::read_graph(folder + "G" + std::to_string(i + 1) + ".json");
    CHECK(own_peak(file.graph) == Bytes(kPeaks[i]));
    CHECK(file.warnings.empty());
  }
  const Graph vgg = io::read_graph(folder + "CM1.json").graph;
  CHECK(vgg.op_count() == 73);
  CHECK(vgg.link_count() == 73 + 149);
  CHECK(vgg.total_time().count() > INT32_MAX);
  const Graph resnet = io::read_graph(folder + "CM2.json").graph;
  CHECK(resnet.op_count() == 353);
  CHECK(resnet.link_count() == 353 + 751);
  CHECK(resnet.op(OpId(352)).phase == "backward");
}

}  // namespace
}  // namespace lowtide

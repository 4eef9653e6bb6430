// Our graph format: every key, defaults, warnings, and round trips.
#include "lowtide/io/graph_json.h"

#include <string>

#include <doctest/doctest.h>

#include "lowtide/graph/hash.h"
#include "lowtide/io/text_file.h"

#include "io/refusal.h"
#include "io/same_graph.h"
#include "io/temporary_folder.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

const std::string kEveryKey =
    std::string(LOWTIDE_SOURCE_DIR) + "/tests/fuzz/seeds/every_key.graph.json";

TEST_CASE("graph file: every key is read") {
  const io::GraphFile file = io::read_graph(kEveryKey);
  const Graph& graph = file.graph;
  CHECK(file.warnings.empty());
  CHECK(graph.name() == "every key");
  CHECK(graph.tick() == TickUnit::us);
  CHECK(graph.resident() == Bytes(64));
  REQUIRE(graph.tensor_count() == 7);
  const Tensor& batch = graph.tensor(TensorId(0));
  CHECK(batch.name == "batch");
  CHECK(batch.bytes == Bytes(100));
  CHECK(batch.role == Role::input);
  CHECK(batch.releasable);
  CHECK(batch.shape == std::vector<std::int64_t>{25});
  CHECK(batch.dtype == "f32");
  CHECK(graph.tensor(TensorId(1)).role == Role::parameter);
  CHECK(graph.tensor(TensorId(2)).role == Role::state);
  CHECK(graph.tensor(TensorId(4)).role == Role::constant);
  CHECK(graph.tensor(TensorId(5)).role == Role::gradient);
  CHECK(graph.tensor(TensorId(5)).name == "d weight \"\\\xc3\xa9\n");
  CHECK(graph.tensor(TensorId(6)).role == Role::activation);
  REQUIRE(graph.op_count() == 4);
  const Op& encode = graph.op(OpId(0));
  CHECK(encode.name == "encode");
  CHECK(encode.kind == "aten.mm");
  CHECK(encode.phase == "forward");
  CHECK(encode.origin == "model.embed");
  CHECK(encode.attributes == R"({"axis":[1,-2500.0,null,true,{"a":"b"}]})");
  CHECK(encode.time == Ticks(30));
  CHECK(encode.workspace == Bytes(16));
  CHECK(graph.inputs(OpId(0)).size() == 2);  // one is listed twice
  CHECK(graph.is_barrier(OpId(1)));
  CHECK_FALSE(graph.op(OpId(1)).recomputable);
  CHECK(graph.after(OpId(2)).front() == OpId(0));
  CHECK(graph.mutates(OpId(2)).front() == TensorId(2));
  CHECK(graph.outputs().front() == TensorId(5));
  CHECK(graph.order()[1] == OpId(2));
}

TEST_CASE("graph file: defaults") {
  const Graph graph = io::read_graph_text(R"({"ops": [{"inputs": [0], "outputs": [1], "time": 0}],
      "tensors": [{"bytes": 1}, {"bytes": 2}], "outputs": [],
      "format": "lowtide-graph", "version": 1})",
                                          "file")
                          .graph;
  CHECK(graph.tick() == TickUnit::none);
  CHECK(graph.resident() == Bytes(0));
  CHECK(graph.tensor(TensorId(0)).role == Role::input);
  CHECK(graph.tensor(TensorId(1)).role == Role::activation);
  CHECK_FALSE(graph.tensor(TensorId(0)).releasable);
  CHECK(graph.op(OpId(0)).recomputable);
  CHECK(graph.op(OpId(0)).attributes.empty());
}

TEST_CASE("graph file: unknown keys give one warning and are not written back") {
  const io::GraphFile file =
      io::read_graph_text(R"({"format": "lowtide-graph", "version": 1, "author": "me",
      "tensors": [{"bytes": 1, "color": 1}, {"bytes": 2, "color": 2}], "outputs": [1],
      "ops": [{"inputs": [0], "outputs": [1], "time": 0, "flops": 5, "attributes": {"any": 1}}]})",
                          "file");
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0] ==
        "unknown keys, without effect: \"author\", \"flops\" in \"ops\", "
        "\"color\" in \"tensors\"");
  CHECK(io::write_graph(file.graph).find("author") == std::string::npos);
  std::string many = R"({"format": "lowtide-graph", "version": 1, "tensors": [], "ops": [])";
  for (int i = 0; i < 1000; ++i) many += ", \"x" + std::to_string(i) + "\": 0";
  CHECK(io::read_graph_text(many + ", \"outputs\": []}", "file")
            .warnings[0]
            .ends_with("and 950 more"));
}

TEST_CASE("graph file: written on one line for each tensor and op, defaults left out") {
  const std::string text = R"({
  "format": "lowtide-graph",
  "version": 1,
  "name": "small",
  "tick": "ns",
  "tensors": [
    {"name": "x", "bytes": 8},
    {"name": "y", "bytes": 4, "role": "gradient", "shape": [], "dtype": "f32"}
  ],
  "ops": [
    {"name": "f", "kind": "aten.mm", "inputs": [0], "outputs": [1], "time": 5},
    {"inputs": [1], "outputs": [], "time": 1, "recomputable": false, "after": [0], "mutates": [1]}
  ],
  "outputs": [1]
}
)";
  CHECK(io::write_graph(io::read_graph_text(text, "file").graph) == text);
  const std::string none =
      "{\n  \"format\": \"lowtide-graph\",\n  \"version\": 1,\n"
      "  \"tensors\": [],\n  \"ops\": [],\n  \"outputs\": []\n}\n";
  CHECK(io::write_graph(io::read_graph_text(none, "file").graph) == none);
}

TEST_CASE("graph file: round trip of every key") {
  const Graph graph = io::read_graph(kEveryKey).graph;
  const std::string text = io::write_graph(graph);
  const io::GraphFile again = io::read_graph_text(text, "again");
  CHECK(again.warnings.empty());
  CHECK(difference(graph, again.graph) == "");
  CHECK(io::write_graph(again.graph) == text);
}

TEST_CASE("graph file: round trip of random graphs") {
  for (int i = 0; i < 300 * test_scale(); ++i) {
    Random random(static_cast<std::uint64_t>(i));
    RandomGraphSettings settings;
    settings.ops = random.below(60);
    settings.described = 0.7;
    const Graph graph = random_graph(random, settings);
    const std::string text = io::write_graph(graph);
    const io::GraphFile again = io::read_graph_text(text, "again");
    REQUIRE(again.warnings.empty());
    REQUIRE(difference(graph, again.graph) == "");
    REQUIRE(graph_hash(graph) == graph_hash(again.graph));
    REQUIRE(io::write_graph(again.graph) == text);
  }
}

TEST_CASE("graph file: through a file, plain and compressed") {
  const TemporaryFolder folder;
  const Graph graph = io::read_graph(kEveryKey).graph;
  for (const char* name : {"g.graph.json", "g.graph.json.gz"}) {
    io::write_text_file(folder / name, io::write_graph(graph));
    CHECK(difference(graph, io::read_graph(folder / name).graph) == "");
  }
}

TEST_CASE("graph file: errors name the file") {
  CHECK(refusal_of([] { io::read_graph_text("[]", "some.json"); }) ==
        Refusal{"some.json", "", "a graph file is an object, not a list"});
  CHECK(refusal_of([] { io::read_graph("/no/such/graph.json"); }).file == "/no/such/graph.json");
}

}  // namespace
}  // namespace lowtide

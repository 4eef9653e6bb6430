#include "lowtide/graph/repeats.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/graph/origin.h"

#include "graph/relisted.h"
#include "graph/same_block.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {

namespace {

// Ops in a row: each reads what the one before made, and maybe something older of its own block.
class Writer {
 public:
  Writer() { add_tensor(); }

  struct Step {
    std::string kind;
    std::size_t back = 0;  // also reads what was made so many ops before
  };

  void add(const Step& step, const std::string& origin = "") {
    Op op;
    op.kind = step.kind;
    op.origin = origin;
    op.time = Ticks(1);
    const auto last = static_cast<std::int64_t>(parts_.tensors.size()) - 1;
    OpLinks links{.inputs = {last}, .outputs = {last + 1}, .after = {}, .mutates = {}};
    if (step.back > 0) links.inputs.push_back(last - static_cast<std::int64_t>(step.back));
    add_tensor();
    parts_.ops.push_back(std::move(op));
    parts_.links.push_back(std::move(links));
  }
  void add(const std::vector<Step>& block, const std::string& origin = "") {
    for (const Step& step : block) add(step, origin);
  }
  void noise(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add({"noise" + std::to_string(noise_++)});
  }
  Graph build() {
    parts_.outputs = {static_cast<std::int64_t>(parts_.tensors.size()) - 1};
    return parts_.build();
  }

 private:
  void add_tensor() {
    parts_.tensors.emplace_back();
    parts_.tensors.back().bytes = Bytes(4);
  }

  GraphParts parts_;
  std::size_t noise_ = 0;
};

// That no shorter block repeats in: the first kind stands only once.
std::vector<Writer::Step> random_block(std::size_t length, Random& random) {
  std::vector<Writer::Step> block{{"first"}};
  for (std::size_t i = 1; i < length; ++i)
    block.push_back({"kind" + std::to_string(random.below(4)), i > 2 ? random.below(i - 1) : 0});
  return block;
}

void check_sound(const Graph& graph, const std::vector<RepeatedBlock>& found) {
  std::vector<int> covered(graph.op_count(), 0);
  std::size_t last = SIZE_MAX;
  for (const RepeatedBlock& block : found) {
    CHECK(block.covered() <= last);
    last = block.covered();
    REQUIRE(block.places.size() > 1);
    Ticks time;
    for (const auto& ops : block.places) {
      CHECK(block_hash(graph, ops) == block.hash);
      CHECK(correspond({graph, block.places.front()}, {graph, ops}));
      for (const OpId op : ops) {
        CHECK(covered[op.index()]++ == 0);
        time += graph.time(op);
      }
    }
    CHECK(time == block.time);
  }
}

}  // namespace

TEST_CASE("repeats: planted blocks are found, apart or consecutive, each complete") {
  Random random(1);
  for (int i = 0; i < samples(200); ++i) {
    const auto block = random_block(4 + random.below(60), random);
    const std::size_t times = 2 + random.below(12);
    const bool apart = random.chance(0.5);
    Writer writer;
    writer.noise(1 + random.below(20));
    for (std::size_t k = 0; k < times; ++k) {
      writer.add(block);
      if (apart) writer.noise(1 + random.below(5));
    }
    writer.noise(random.below(20));
    const Graph graph = writer.build();
    const auto found = repeated_blocks(graph);
    check_sound(graph, found);
    REQUIRE(!found.empty());
    CHECK(found.front().places.size() == times);
    CHECK(found.front().ops() == block.size());
    if (apart)
      CHECK(graph
                .op(*std::ranges::min_element(found.front().places.front(), {},
                                              [&](OpId op) { return graph.position(op); }))
                .kind == "first");
  }
}

TEST_CASE("repeats: blocks with equal ops but different links are of different kinds") {
  const std::vector<Writer::Step> straight{{"a"}, {"b"}, {"c"}, {"d"}, {"e", 2}, {"f"}};
  std::vector<Writer::Step> crossed = straight;
  crossed[4].back = 3;
  Writer writer;
  for (int i = 0; i < 3; ++i) {
    writer.noise(1);
    writer.add(straight);
    writer.noise(1);
    writer.add(crossed);
  }
  const Graph graph = writer.build();
  const auto found = repeated_blocks(graph);
  check_sound(graph, found);
  REQUIRE(found.size() == 2);
  CHECK(found[0].hash != found[1].hash);
  for (const RepeatedBlock& block : found) {
    CHECK(block.places.size() == 3);
    CHECK(block.ops() == 6);
  }
}

TEST_CASE("repeats: origins group ops that the order interleaves") {
  // Two ops of each of three layers in turn, as branches run side by side.
  Writer writer;
  GraphParts parts;
  for (const char* kind : {"a", "b", "c"})
    for (const char* layer : {"net.0.left", "net.1.left", "net.2.left"}) writer.add({kind}, layer);
  const Graph chain = writer.build();
  const auto found = repeated_blocks(chain);
  check_sound(chain, found);
  REQUIRE(!found.empty());
  CHECK(found.front().covered() >= 6);

  for (int i = 0; i < 4; ++i) parts.tensors.emplace_back();
  for (const char* kind : {"a", "b", "c"})
    for (std::int64_t layer = 0; layer < 4; ++layer) {
      Op op;
      // The kinds come in another order each time, so that no stretch repeats.
      op.kind = kind;
      op.origin = "net." + std::to_string(layer) + ".x";
      const auto made = static_cast<std::int64_t>(parts.tensors.size());
      parts.tensors.emplace_back();
      parts.ops.push_back(std::move(op));
      parts.links.push_back({.inputs = {made - 4}, .outputs = {made}, .after = {}, .mutates = {}});
    }
  const Graph beside = parts.build();
  const auto layers = repeated_blocks(beside);
  check_sound(beside, layers);
  REQUIRE(layers.size() == 1);
  CHECK(layers[0].places.size() == 4);
  CHECK(layers[0].ops() == 3);
}

TEST_CASE("repeats: in a chain of equal ops each op is a block") {
  Writer writer;
  for (int i = 0; i < 1000; ++i) writer.add({""});
  const Graph graph = writer.build();
  const auto found = repeated_blocks(graph);
  REQUIRE(found.size() == 1);
  CHECK(found[0].places.size() == 1000);
  CHECK(found[0].ops() == 1);
  check_sound(graph, found);
}

TEST_CASE("repeats: none in graphs with no op, one op, or different ops only") {
  CHECK(repeated_blocks(GraphBuilder().build()).empty());
  Writer one;
  one.noise(1);
  CHECK(repeated_blocks(one.build()).empty());
  Writer many;
  many.noise(100);
  CHECK(repeated_blocks(many.build()).empty());
}

TEST_CASE("repeats: blocks found in random graphs are equal") {
  Random random(2);
  for (int i = 0; i < samples(200); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(60);
    settings.bytes = 1;
    settings.workspace = 0;
    const Graph graph = random_graph(random, settings);
    check_sound(graph, repeated_blocks(graph));
  }
}

TEST_CASE("repeats: the layers of a transformer are found, forward and backward") {
  const Graph graph = generate("transformer", 400, 1);
  const auto found = repeated_blocks(graph);
  check_sound(graph, found);
  REQUIRE(found.size() >= 2);
  CHECK(found[0].places.size() == found[1].places.size());
  CHECK(found[0].covered() + found[1].covered() > graph.op_count() * 8 / 10);
}

TEST_CASE("origins that differ in numbers only have one pattern") {
  CHECK(origin_pattern("layers.12.conv1") == "layers.*.conv1");
  CHECK(origin_pattern("h0") == "h0");
  CHECK(origin_pattern("3") == "*");
  CHECK(origin_pattern("") == "");
}

}  // namespace lowtide

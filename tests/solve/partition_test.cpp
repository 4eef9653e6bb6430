// Every partitioner on every kind of graph, and H-Partition against its text.
#include "lowtide/graph/partition.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/graph/builder.h"
#include "lowtide/graph/generate.h"
#include "lowtide/solve/hierarchy/partition/bisect.h"
#include "lowtide/solve/hierarchy/partition/h_borders.h"
#include "lowtide/solve/hierarchy/partition/layer_dag.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"

#include "oracles/direct_h_partition.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide::solve::partition {

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Partition partition_of(const Graph& graph, std::string_view name, const Settings& settings = {}) {
  const PartitionerTable table = make_partitioners();
  const Partitioner* partitioner = table.find(name);
  REQUIRE(partitioner != nullptr);
  Options options(partitioner->options());
  for (const auto& [key, value] : settings) options.set(key, value);
  auto partition = partitioner->partition(graph, options);
  REQUIRE(partition.has_value());
  check_partition(graph, *partition);
  return std::move(*partition);
}

// The forward ops of each layer in each block but the root.
std::set<std::set<OpId>> blocks_of(const Partition& partition) {
  std::set<std::set<OpId>> blocks;
  for (const BlockId id : partition.blocks.ids()) {
    if (id == Partition::root()) continue;
    const auto ops = partition.ops(partition.blocks[id].forward);
    if (!ops.empty()) blocks.emplace(ops.begin(), ops.end());
  }
  return blocks;
}

bool same(const Partition& a, const Partition& b) {
  if (a.order != b.order || a.blocks.size() != b.blocks.size()) return false;
  for (const BlockId id : a.blocks.ids())
    if (a.blocks[id].parent != b.blocks[id].parent || a.blocks[id].name != b.blocks[id].name ||
        a.blocks[id].forward.parts != b.blocks[id].forward.parts ||
        a.blocks[id].backward.parts != b.blocks[id].backward.parts)
      return false;
  return true;
}

Graph random_case(Random& random, std::size_t ops, bool plain) {
  RandomGraphSettings settings;
  settings.ops = ops;
  if (plain) settings = RandomGraphSettings::plain(ops);
  settings.barrier = 0.1;
  settings.window = 3;
  return random_graph(random, settings);
}

}  // namespace

TEST_CASE("partitioners: complete, convex and deterministic on any graph") {
  Random random(5);
  std::vector<Graph> graphs;
  for (int i = 0; i < 30; ++i)
    graphs.push_back(random_case(random, 1 + static_cast<std::size_t>(i), i % 2 == 0));
  for (const std::string_view kind : generator_kinds()) graphs.push_back(generate(kind, 700, 1));
  const PartitionerTable table = make_partitioners();
  for (const auto& partitioner : table.all()) {
    CAPTURE(std::string(partitioner->name()));
    for (const Graph& graph : graphs) {
      const Partition partition = partition_of(graph, partitioner->name());
      CHECK(same(partition, partition_of(graph, partitioner->name())));
    }
  }
}

TEST_CASE("partitioners: layers stay together") {
  const PartitionerTable table = make_partitioners();
  for (const auto& partitioner : table.all())
    for (const std::string_view kind : {"transformer", "unet"}) {
      const Graph graph = generate(kind, 500, 3);
      const Partition partition = partition_of(graph, partitioner->name());
      for (const BlockId id : partition.blocks.ids()) {
        const Block& block = partition.blocks[id];
        std::set<OpId> layers;
        for (const OpId op : partition.ops(block.forward)) layers.insert(op);
        for (const OpId op : partition.ops(block.backward))
          if (const OpId layer = partition.phases.layer[op]; layer.valid())
            CHECK(layers.contains(layer));
      }
    }
}

TEST_CASE("partitioners: refused options") {
  const PartitionerTable table = make_partitioners();
  for (const auto& partitioner : table.all()) {
    for (const OptionSpec& spec : partitioner->options()) {
      Options options(partitioner->options());
      CHECK_THROWS_AS(options.set(spec.name, "much"), InputError);
      CHECK_THROWS_AS(options.set(spec.name, "-1e9"), InputError);
    }
    Options options(partitioner->options());
    CHECK_THROWS_AS(options.set("no_such", "1"), InputError);
  }
}

TEST_CASE("partitioners: a stop is obeyed") {
  const Graph graph = generate("transformer", 3000, 1);
  const PartitionerTable table = make_partitioners();
  for (const auto& partitioner : table.all())
    CHECK_FALSE(partitioner->partition(graph, Options(partitioner->options()), [] { return true; })
                    .has_value());
}

namespace {

std::set<std::set<OpId>> direct_blocks(const Graph& graph, Links links, std::size_t top,
                                       std::size_t block, double alpha) {
  const Layers layers = layers_of(graph, phases_of(graph), links);
  std::set<std::set<OpId>> blocks;
  for (const auto& nodes : oracles::direct_h_partition(layers, top, block, alpha)) {
    std::set<OpId> ops;
    for (const std::size_t node : nodes)
      ops.insert(layers.ops[node].begin(), layers.ops[node].end());
    blocks.insert(ops);
  }
  return blocks;
}

// But for those of layers without links, which the partitioner puts into blocks of their own.
std::set<std::set<OpId>> linked_blocks(const Graph& graph, Links links,
                                       std::set<std::set<OpId>> blocks) {
  const Layers layers = layers_of(graph, phases_of(graph), links);
  for (Node node = 0; node < layers.dag.size(); ++node)
    if (layers.dag.before[node].empty() && layers.dag.behind[node].empty())
      std::erase_if(blocks,
                    [&](const auto& block) { return block.contains(layers.ops[node].front()); });
  return blocks;
}

}  // namespace

namespace {

// A chain some ops of which read one of a few early ops too, or an op not long before.
Graph with_hubs(Random& random, std::size_t ops) {
  GraphBuilder builder;
  for (std::size_t i = 0; i < ops; ++i) {
    Tensor tensor;
    tensor.bytes = Bytes(random.between(1, 9));
    builder.add_tensor(std::move(tensor));
    const auto at = static_cast<std::int64_t>(i);
    OpLinks links;
    if (i > 0) links.inputs = {at - 1};
    if (i > 3 && random.chance(0.5)) links.inputs.push_back(random.between(0, 2));
    if (i > 9 && random.chance(0.2)) links.inputs.push_back(at - random.between(2, 6));
    links.outputs = {at};
    builder.add_op(Op(), links);
  }
  return builder.build();
}

}  // namespace

TEST_CASE("h_partition: equal to a direct implementation") {
  Random random(7);
  std::size_t by_flow = 0, by_all = 0;
  const auto agree = [&](const Graph& graph, std::size_t top, std::size_t block,
                         const std::string& alpha) {
    const auto blocks = blocks_of(partition_of(graph, "h_partition",
                                               {{"top_size", std::to_string(top)},
                                                {"block_size", std::to_string(block)},
                                                {"alpha", alpha}}));
    const auto equal = [&](Links links) {
      return linked_blocks(graph, links, blocks) ==
             direct_blocks(graph, links, top, block, std::stod(alpha));
    };
    if (equal(Links::flow)) {
      ++by_flow;
      return;
    }
    ++by_all;
    CHECK(equal(Links::all));
  };
  for (int i = 0; i < sanitized(60, 150); ++i) {
    const Graph graph = random_case(random, 10 + static_cast<std::size_t>(i % 25), i % 3 > 0);
    agree(graph, 2 + static_cast<std::size_t>(i % 4), 4 + static_cast<std::size_t>(i % 9),
          i % 2 == 0 ? "0.5" : "0");
  }
  CHECK(by_flow > by_all);
  for (std::size_t i = 0; i < 40; ++i)
    agree(with_hubs(random, 30 + i), 2 + i % 5, 4 + i % 7, "0.5");
  for (const std::string_view kind : {"chain", "resnet", "unet", "transformer", "layered"}) {
    agree(generate(kind, 150, 1), 6, 7, "0.5");
    agree(generate(kind, 150, 2), 10, 20, "1.5");
  }
  // Among the random ones, some whose backward does not mirror their forward.
  CHECK(by_all > 0);
  CHECK(by_all < 10);
}

namespace {

// By the definition: values with an end among the nodes and another outside.
Bytes direct_border(const LayerDag& dag, const std::vector<Node>& owner,
                    const std::set<Node>& nodes) {
  Bytes bytes;
  for (std::size_t i = 0; i < dag.values.size(); ++i) {
    bool inside = false, outside = dag.values[i].leaves;
    const auto has_end = [&](Node node) {
      (nodes.contains(owner[node]) ? inside : outside) = true;
    };
    has_end(dag.values[i].maker);
    for (const Node reader : dag.readers[i]) has_end(reader);
    if (inside && outside) bytes += dag.values[i].bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("h_partition: borders of all sets of nodes while nodes are merged") {
  Random random(9);
  for (int i = 0; i < 60; ++i) {
    const Graph graph = random_case(random, 30, i % 2 == 0);
    const LayerDag dag = layers_of(graph, phases_of(graph), Links::all).dag;
    Borders borders(dag, static_cast<std::size_t>(i % 5) * 2);
    std::vector<Node> owner(dag.size()), nodes(dag.size());
    std::iota(owner.begin(), owner.end(), Node{0});
    std::iota(nodes.begin(), nodes.end(), Node{0});
    while (nodes.size() > 3) {
      for (int k = 0; k < 10; ++k) {
        random.shuffle(nodes);
        const std::size_t count = random.below(std::min<std::size_t>(nodes.size(), 7));
        const std::vector<Node> some(nodes.end() - static_cast<std::ptrdiff_t>(count), nodes.end());
        REQUIRE(borders.around(some) == direct_border(dag, owner, {some.begin(), some.end()}));
      }
      const std::vector<Node> merged(nodes.end() - 3, nodes.end());
      borders.merge(merged, merged.back());
      for (Node& node : owner)
        if (std::ranges::find(merged, node) != merged.end()) node = merged.back();
      nodes.erase(nodes.end() - 3, nodes.end() - 1);
    }
  }
}

TEST_CASE("h_partition: neither many readers nor wide layers take long") {
  GraphBuilder star;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    star.add_tensor(Tensor());
    OpLinks links;
    if (i > 0) links.inputs = {0};
    links.outputs = {i};
    star.add_op(Op(), links);
  }
#if LOWTIDE_DEBUG_CHECKS
  const std::size_t ops = 1'000;  // sanitizers take long themselves
#else
  const std::size_t ops = 10'000;
#endif
  const std::clock_t begin = std::clock();
  CHECK(partition_of(star.build(), "h_partition").blocks.size() > 0);
  CHECK(partition_of(generate("layered", ops, 1), "h_partition").blocks.size() > 50);
  // A second; twenty each where a hub is looked through for each of its readers, or a block that
  // has grown for each candidate.
  CHECK(std::clock() - begin < 8 * CLOCKS_PER_SEC);
}

TEST_CASE("h_partition: sizes are kept") {
  for (const std::string_view kind : {"chain", "resnet", "unet", "transformer"}) {
    const Graph graph = generate(kind, 4000, 1);
    const Partition partition = partition_of(graph, "h_partition");
    for (const BlockId id : partition.blocks.ids()) {
      std::size_t weight = 0;
      for (const BlockPart& part : partition.blocks[id].forward.parts)
        weight += part.op.valid() ? 1 : 2;
      CAPTURE(std::string(kind));
      // The barrier stands in the root, beside what is counted.
      CHECK(weight <= (id == Partition::root() ? 31 : 20));
    }
  }
}

TEST_CASE("chain: cuts where one tensor crosses") {
  // 0 -> 1 -> 2, 3 -> 4 -> 5; only op 4 needs both branches.
  const Graph graph = Sketch({1, 1, 1, 1, 1, 1})
                          .op({}, {0})
                          .op({0}, {1})
                          .op({1}, {2})
                          .op({1}, {3})
                          .op({2, 3}, {4})
                          .op({4}, {5})
                          .keep({5})
                          .graph();
  const std::set<std::set<OpId>> middle{{OpId(2), OpId(3), OpId(4)}};
  CHECK(blocks_of(partition_of(graph, "chain")) == middle);
  CHECK(blocks_of(partition_of(graph, "chain", {{"crossing", "2"}})).empty());
  const std::set<std::set<OpId>> halves{{OpId(0), OpId(1)}, {OpId(2), OpId(3), OpId(4), OpId(5)}};
  CHECK(blocks_of(partition_of(graph, "chain", {{"blocks", "2"}})) == halves);
}

TEST_CASE("repeat: the blocks of a transformer are found, and are equal in number") {
  const Graph graph = generate("transformer", 2000, 4);
  const Partition partition = partition_of(graph, "repeat");
  std::multiset<std::size_t> sizes;
  for (const auto& block : blocks_of(partition)) sizes.insert(block.size());
  std::size_t most = 0;
  for (const std::size_t size : sizes) most = std::max(most, sizes.count(size) * size);
  CHECK(2 * most > partition.ops(partition.blocks[Partition::root()].forward).size());
}

TEST_CASE("origin: modules inside modules, called again or not") {
  const std::vector<std::string> origins{"a.x", "a.x", "a.y.z", "a.y.z", "b",    "",
                                         "a.x", "a.x", "c/1",   "c/1",   "c/12", "c/12"};
  GraphBuilder builder;
  for (std::size_t i = 0; i < origins.size(); ++i) {
    builder.add_tensor(Tensor());
    Op op;
    op.origin = origins[i];
    OpLinks links;
    if (i > 0) links.inputs = {static_cast<std::int64_t>(i) - 1};
    links.outputs = {static_cast<std::int64_t>(i)};
    builder.add_op(std::move(op), links);
  }
  const Graph graph = builder.build();
  const auto names = [&](const Settings& settings) {
    const Partition partition = partition_of(graph, "origin", settings);
    std::multiset<std::string> found;
    for (const Block& block : partition.blocks) {
      const auto ops = partition.ops(block.forward);
      found.insert(block.name + ":" + std::to_string(ops.front().index()) + "-" +
                   std::to_string(ops.back().index()));
    }
    return found;
  };
  using Names = std::multiset<std::string>;
  CHECK(names({}) ==
        Names{":0-11", "a:0-3", "a.x:0-1", "a.y:2-3", "a:6-7", "c:8-11", "c/1:8-9", "c/12:10-11"});
  CHECK(names({{"levels", "1"}}) == Names{":0-11", "a:0-3", "a:6-7", "c:8-11"});
}

TEST_CASE("multilevel: the limit on children is kept") {
  for (const std::string_view kind : {"transformer", "unet", "layered"}) {
    CAPTURE(std::string(kind));
    const Graph graph = generate(kind, 1500, 2);
    const Partition partition = partition_of(graph, "multilevel", {{"block_size", "12"}});
    for (const BlockId id : partition.blocks.ids()) {
      std::size_t alone = 0;  // the barrier
      for (const BlockPart& part : partition.blocks[id].forward.parts)
        if (part.op.valid() && graph.is_barrier(part.op)) ++alone;
      CHECK(partition.blocks[id].forward.parts.size() - alone <= 12);
    }
  }
}

TEST_CASE("bisect: links one way, about the share, and optimal on small graphs") {
  Random random(11);
  std::int64_t cut_sum = 0, best_sum = 0;
  for (int i = 0; i < 60; ++i) {
    const Graph graph = random_case(random, 4 + static_cast<std::size_t>(i % 9), true);
    const LayerDag dag = layers_of(graph, phases_of(graph), Links::all).dag;
    if (dag.size() < 2) continue;
    const auto bytes = [&](std::uint32_t second) {
      std::int64_t sum = 0;
      for (std::size_t v = 0; v < dag.values.size(); ++v) {
        bool across = false;
        for (const Node reader : dag.readers[v]) across = across || (second >> reader & 1) != 0;
        if (across && (second >> dag.values[v].maker & 1) == 0) sum += dag.values[v].bytes.count();
      }
      return sum;
    };
    const auto one_way = [&](std::uint32_t second) {
      for (Node node = 0; node < dag.size(); ++node)
        for (const Node before : dag.before[node])
          if ((second >> before & 1) != 0 && (second >> node & 1) == 0) return false;
      return true;
    };
    const auto sides = bisect(dag, 0.5, 0.25, {});
    std::uint32_t found = 0;
    for (Node node = 0; node < dag.size(); ++node) found |= std::uint32_t{sides[node]} << node;
    CHECK(one_way(found));
    const std::size_t first = dag.size() - static_cast<std::size_t>(std::popcount(found));
    CHECK(first >= std::max<std::size_t>(1, dag.size() / 4));
    CHECK(4 * first <= 3 * dag.size());
    std::int64_t best = INT64_MAX;
    for (std::uint32_t second = 0; second < 1u << dag.size(); ++second) {
      const std::size_t size = dag.size() - static_cast<std::size_t>(std::popcount(second));
      if (size < std::max<std::size_t>(1, dag.size() / 4) || 4 * size > 3 * dag.size()) continue;
      if (one_way(second)) best = std::min(best, bytes(second));
    }
    CHECK(bytes(found) >= best);
    cut_sum += bytes(found);
    best_sum += best;
  }
  CHECK(2 * cut_sum < 3 * best_sum);
}

}  // namespace lowtide::solve::partition

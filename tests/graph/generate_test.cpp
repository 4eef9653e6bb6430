#include "lowtide/graph/generate.h"

#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/hash.h"
#include "lowtide/graph/orders.h"
#include "lowtide/sim/simulate.h"

#include "graph/closure.h"

namespace lowtide {

namespace {

std::vector<std::string_view> training_kinds() {
  const auto kinds = generator_kinds();
  return {kinds.begin() + 1, kinds.end()};
}

Bytes all_bytes(const Graph& graph) {
  Bytes sum;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) sum += graph.bytes(TensorId(i));
  return sum;
}

std::size_t barrier_position(const Graph& graph) {
  std::size_t found = graph.op_count(), barriers = 0;
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    if (graph.is_barrier(graph.order()[i])) found = i, ++barriers;
  REQUIRE(barriers == 1);
  return found;
}

}  // namespace

TEST_CASE("generated graphs follow from kind, ops and seed alone") {
  std::set<std::string> hashes;
  for (std::string_view kind : generator_kinds())
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const std::string hash = graph_hash(generate(kind, 200, seed));
      CHECK(hash == graph_hash(generate(kind, 200, seed)));
      CHECK(hashes.insert(hash).second);
    }
}

TEST_CASE("generated graphs have about as many ops as asked for") {
  for (std::string_view kind : generator_kinds())
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      for (const std::size_t ops : {1u, 2u, 3u, 10u, 30u, 77u, 100u, 300u, 1000u, 3001u}) {
        const std::size_t made = generate(kind, ops, seed).op_count();
        CAPTURE(kind);
        CAPTURE(ops);
        CAPTURE(made);
        // Half a block; below the smallest network of a kind, that one.
        const double block = kind == "layered" ? 0 : kind == "chain" ? 2 : 25;
        if (kind != "layered" && ops < 10) {
          CHECK(made <= 20);
          continue;
        }
        CHECK(std::abs(static_cast<double>(made) - static_cast<double>(ops)) <= block);
        if (ops >= 1000)
          CHECK(std::abs(static_cast<double>(made) / static_cast<double>(ops) - 1) < 0.03);
      }
}

TEST_CASE("generated graphs run in their given order within a sensible peak") {
  for (std::string_view kind : generator_kinds())
    for (std::uint64_t seed = 0; seed < 5; ++seed)
      for (const std::size_t ops : {10u, 100u, 1000u}) {
        CAPTURE(kind);
        CAPTURE(ops);
        const Graph graph = generate(kind, ops, seed);
        CHECK(is_topological(graph, graph.order()));
        const Timeline timeline = simulate(graph, own_plan(graph));
        REQUIRE_FALSE(timeline.violation);
        CHECK(timeline.cost.peak < all_bytes(graph));
        CHECK(4 * timeline.cost.peak.count() > all_bytes(graph).count());
        CHECK(graph.total_time() > Ticks(0));
      }
}

TEST_CASE("training graphs: most memory is needed where the backward takes over") {
  for (std::string_view kind : training_kinds()) {
    CAPTURE(kind);
    const Graph graph = generate(kind, 2000, 1);
    const Plan plan = own_plan(graph);
    const Timeline timeline = simulate(graph, plan);
    std::size_t computed = 0;
    for (std::size_t i = 0; i < timeline.peak_step(); ++i)
      computed += plan.steps[i].is_compute() ? 1 : 0;
    const auto barrier = static_cast<double>(barrier_position(graph));
    CHECK(static_cast<double>(computed) > 0.8 * barrier);
    CHECK(static_cast<double>(computed) < 1.25 * barrier);
  }
}

TEST_CASE("training graphs have gradients of all parameters, and what only backward ops read") {
  for (std::string_view kind : training_kinds()) {
    CAPTURE(kind);
    const Graph graph = generate(kind, 600, 2);
    const std::size_t barrier = barrier_position(graph);
    std::multiset<std::string> parameters, gradients;
    std::size_t saved = 0;
    for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
      const TensorId id(i);
      const Tensor& tensor = graph.tensor(id);
      if (tensor.role == Role::parameter) parameters.insert(tensor.name + ".grad");
      if (tensor.role == Role::gradient) {
        gradients.insert(tensor.name);
        CHECK(graph.is_output(id));
      }
      std::int64_t elements = 1;
      for (std::int64_t size : tensor.shape) elements *= size;
      CHECK(graph.bytes(id).count() % elements == 0);
      if (graph.is_input(id) || graph.position(graph.producer(id)) > barrier) continue;
      for (OpId reader : graph.consumers(id))
        if (graph.position(reader) > barrier) {
          ++saved;
          break;
        }
    }
    CHECK(parameters == gradients);
    CHECK(saved > barrier / 3);
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      const Op& op = graph.op(graph.order()[i]);
      if (i != barrier) CHECK(op.phase == (i < barrier ? "forward" : "backward"));
      CHECK_FALSE(op.kind.empty());
    }
  }
}

TEST_CASE("no backward op can run before the barrier") {
  for (std::string_view kind : training_kinds()) {
    const Graph graph = generate(kind, 300, 3);
    const std::size_t barrier = barrier_position(graph);
    const Closure closure = make_closure(graph);
    const OpId turn = graph.order()[barrier];
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      const OpId op = graph.order()[i];
      CHECK(closure[turn.index()][op.index()] == (i >= barrier));
      if (graph.outputs(op).empty()) CHECK(closure[op.index()][turn.index()]);
    }
  }
}

TEST_CASE("generated networks have the structure of their kind") {
  const auto count = [](const Graph& graph, auto holds) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < graph.op_count(); ++i) found += holds(OpId(i)) ? 1 : 0;
    return found;
  };
  const Graph resnet = generate("resnet", 1000, 4), unet = generate("unet", 1000, 4);
  for (const Graph* graph : {&resnet, &unet}) {
    CHECK(count(*graph, [&](OpId op) { return graph->workspace(op) > Bytes(0); }) > 50);
    CHECK(count(*graph, [&](OpId op) { return !graph->mutates(op).empty(); }) > 50);
    CHECK(count(*graph, [&](OpId op) { return graph->outputs(op).size() > 1; }) > 100);
  }
  const Graph transformer = generate("transformer", 1000, 4);
  CHECK(count(transformer, [&](OpId op) { return !transformer.recomputable(op); }) > 50);
  CHECK(count(transformer, [&](OpId op) { return !transformer.after(op).empty(); }) > 50);
  CHECK(count(transformer, [&](OpId op) { return transformer.outputs(op).size() > 2; }) > 50);

  // Sizes change from stage to stage.
  std::set<std::int64_t> sizes;
  for (std::size_t i = 0; i < resnet.op_count(); ++i)
    if (resnet.op(OpId(i)).kind == "aten.relu")
      sizes.insert(resnet.bytes(resnet.outputs(OpId(i)).front()).count());
  CHECK(sizes.size() >= 4);
}

TEST_CASE("layered graphs resemble the published ones") {
  struct Published {
    std::size_t ops;
    double width, edges, peak_share;
  };
  // Edges, and peak of the given order over the sum of all sizes, of the published graphs.
  for (const Published& known : {Published{100, 0.27, 236, 0.227},
                                 {250, 0.43, 944, 0.287},
                                 {500, 0.36, 2461, 0.282},
                                 {1000, 0.31, 5875, 0.311}}) {
    CAPTURE(known.ops);
    constexpr int kSeeds = 60;
    double edges = 0, share = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      LayeredSettings settings;
      settings.width = known.width;
      const Graph graph = generate_layered(known.ops, seed, settings);
      CHECK(graph.op_count() == known.ops);
      edges += static_cast<double>(graph.link_count() - graph.op_count()) / kSeeds;
      share += static_cast<double>(own_peak(graph).count()) /
               static_cast<double>(all_bytes(graph).count()) / kSeeds;
      CHECK(graph.time(OpId(0)) == Ticks(0));
      CHECK(graph.time(OpId(known.ops - 1)) == Ticks(0));
      for (std::size_t i = 1; i < known.ops; ++i) CHECK_FALSE(graph.inputs(OpId(i)).empty());
      for (std::size_t i = 0; i + 1 < known.ops; ++i)
        CHECK_FALSE(graph.successors(OpId(i)).empty());
    }
    CHECK(edges == doctest::Approx(known.edges).epsilon(0.1));
    CHECK(share == doctest::Approx(known.peak_share).epsilon(0.25));
  }
}

TEST_CASE("generators refuse invalid arguments") {
  CHECK_THROWS_AS(generate("vgg", 10, 0), InputError);
  for (std::string_view kind : generator_kinds()) CHECK_THROWS_AS(generate(kind, 0, 0), InputError);
  CHECK_THROWS_AS(generate_layered(10, 0, {.width = 0}), InputError);
  CHECK_THROWS_AS(generate_layered(10, 0, {.spread = 2}), InputError);
  CHECK_THROWS_AS(generate_layered(10, 0, {.density = -1}), InputError);
  CHECK_THROWS_AS(generate_layered(10, 0, {.skips = 1}), InputError);
}

TEST_CASE("layered graphs at the limits of their settings") {
  for (double width : {0.01, 0.5, 0.99})
    for (double density : {0.0, 1.0})
      for (const std::size_t ops : {1u, 2u, 3u, 4u, 50u}) {
        const Graph graph =
            generate_layered(ops, 1, {.width = width, .spread = 1, .density = density});
        CHECK(graph.op_count() == ops);
      }
}

TEST_CASE("100,000 ops of every kind are generated, and their order is legal") {
  // A fifth of them where every step is checked.
  constexpr std::size_t kOps = LOWTIDE_DEBUG_CHECKS ? 20'000 : 100'000;
  for (std::string_view kind : generator_kinds()) {
    const Graph graph = generate(kind, kOps, 0);
    CHECK(static_cast<double>(graph.op_count()) > 0.99 * kOps);
    CHECK_FALSE(simulate(graph, own_plan(graph)).violation);
  }
}

}  // namespace lowtide

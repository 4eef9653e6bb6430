// The oracle against hand-computed cases, against itself with frees anywhere, and its witnesses
// against verify.
#include "oracles/brute_force.h"

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"

#include "support/judge.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

Tensor tensor(std::int64_t bytes, bool releasable = false) {
  Tensor result;
  result.bytes = Bytes(bytes);
  result.releasable = releasable;
  return result;
}

Op op(std::int64_t time) {
  Op result;
  result.time = Ticks(time);
  return result;
}

// a (4) feeds b (4), which feeds c (4); d (1) reads c and a. Only d is kept.
Graph skip_chain(bool recomputable) {
  GraphBuilder builder;
  const TensorId a = builder.add_tensor(tensor(4)), b = builder.add_tensor(tensor(4));
  const TensorId c = builder.add_tensor(tensor(4)), d = builder.add_tensor(tensor(1));
  Op first = op(5);
  first.recomputable = recomputable;
  builder.add_op(first, std::vector<TensorId>{}, {a});
  builder.add_op(op(3), {a}, {b});
  builder.add_op(op(2), {b}, {c});
  builder.add_op(op(1), {c, a}, {d});
  builder.add_output(d);
  return builder.build();
}

TEST_CASE("brute force: a skip connection is recomputed when it does not fit") {
  const Graph graph = skip_chain(true);
  const auto curve = oracle::all_tradeoffs(graph, Order::free);
  REQUIRE(curve.size() == 2);
  CHECK(curve[0].peak == Bytes(12));
  CHECK(curve[0].duration == Ticks(11));
  CHECK(curve[1].peak == Bytes(9));
  CHECK(curve[1].duration == Ticks(16));
  CHECK(oracle::smallest_peak(graph, Order::given) == Bytes(9));
  CHECK(oracle::least_duration(curve, Bytes(11)) == Ticks(16));
  CHECK_FALSE(oracle::least_duration(curve, Bytes(8)));
  CHECK(oracle::least_peak(curve, Ticks(15)) == Bytes(12));
  CHECK(oracle::least_peak(curve, Ticks(16)) == Bytes(9));
  CHECK_FALSE(oracle::least_peak(curve, Ticks(10)));
}

TEST_CASE("brute force: a tensor that is not recomputable is kept") {
  CHECK(oracle::smallest_peak(skip_chain(false), Order::free) == Bytes(12));
}

TEST_CASE("brute force: the order matters where it is given") {
  // Two branches from nothing, large (10) to small (1), joined: given order runs both large first.
  GraphBuilder builder;
  std::vector<TensorId> large, small;
  for (int i = 0; i < 2; ++i) {
    large.push_back(builder.add_tensor(tensor(10)));
    small.push_back(builder.add_tensor(tensor(1)));
  }
  const TensorId join = builder.add_tensor(tensor(1));
  for (TensorId t : large) {
    Op make = op(4);
    make.recomputable = false;
    builder.add_op(make, std::vector<TensorId>{}, {t});
  }
  for (std::size_t i = 0; i < 2; ++i) builder.add_op(op(1), {large[i]}, {small[i]});
  builder.add_op(op(1), small, {join});
  builder.add_output(join);
  const Graph graph = builder.build();
  CHECK(oracle::smallest_peak(graph, Order::given) == Bytes(21));
  CHECK(oracle::smallest_peak(graph, Order::free) == Bytes(12));
  CHECK(oracle::fastest(graph, Order::free, Bytes(12))->duration == Ticks(11));
}

TEST_CASE("brute force: a releasable input is freed after its last reader") {
  GraphBuilder builder;
  const TensorId in = builder.add_tensor(tensor(8, true));
  const TensorId x = builder.add_tensor(tensor(2)), y = builder.add_tensor(tensor(8));
  builder.add_op(op(1), {in}, {x});
  builder.add_op(op(1), {x}, {y});
  builder.add_output(y);
  CHECK(oracle::smallest_peak(builder.build(), Order::free) == Bytes(10));
}

TEST_CASE("brute force refuses what is too large") {
  Random random(1);
  CHECK_THROWS_AS(
      oracle::smallest_peak(random_graph(random, RandomGraphSettings::plain(8)), Order::free),
      InputError);
}

TEST_CASE("brute force: pruned frees lose no optimum") {
  const int graphs = samples(500);
  for (int seed = 0; seed < graphs; ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(5);
    const Graph graph = random_graph(random, settings);
    for (const Order order : {Order::free, Order::given}) {
      const auto curve = oracle::all_tradeoffs(graph, order);
      REQUIRE_FALSE(curve.empty());
      CHECK(oracle::smallest_peak(graph, order) == curve.back().peak);
      CHECK(oracle::smallest_peak(graph, order, oracle::Frees::anywhere) == curve.back().peak);
      for (const auto& point : curve) {
        const auto slow = oracle::fastest(graph, order, point.peak, oracle::Frees::anywhere);
        REQUIRE(slow);
        CHECK(slow->duration == point.duration);
        CHECK(slow->peak == point.peak);
      }
      CHECK_FALSE(
          oracle::fastest(graph, order, curve.back().peak - Bytes(1), oracle::Frees::anywhere));
    }
  }
}

TEST_CASE("brute force: its schedules pass verify at their cost") {
  const int graphs = samples(1000);
  for (int seed = 0; seed < graphs; ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 1000000);
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(7);
    const Graph graph = random_graph(random, settings);
    for (const Order order : {Order::free, Order::given})
      for (const auto& point : oracle::all_tradeoffs(graph, order)) {
        const Verdict verdict =
            judge({.graph = graph, .budget = point.peak, .order = order}, point.plan);
        REQUIRE(verdict.ok);
        CHECK(verdict.cost == Cost{point.duration, point.peak, Bytes(0)});
      }
  }
}

}  // namespace
}  // namespace lowtide

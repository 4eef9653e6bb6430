// The table against the optimum of everything that may be computed again, and against every
// sequence of steps.
#include <doctest/doctest.h>

#include "lowtide/graph/builder.h"
#include "lowtide/graph/generate.h"
#include "lowtide/solve/hierarchy/block/rotor.h"

#include "oracles/brute_force.h"
#include "solve/level_case.h"
#include "support/scale.h"

namespace lowtide {
namespace {

using solve::hierarchy::BlockBudget;
using solve::hierarchy::BlockOption;
using solve::hierarchy::make_rotor;

Tensor tensor_of(std::int64_t bytes) {
  Tensor tensor;
  tensor.bytes = Bytes(bytes);
  return tensor;
}

Op op_of(std::int64_t time, bool barrier) {
  Op op;
  op.time = Ticks(time);
  if (barrier) op.kind = kBarrierKind;
  return op;
}

// Layers with sizes and times of their own; the backward of each reads what the layer read or, if
// `any`, what it made, both or neither, and may make a gradient that stays.
Graph uneven_chain(Random& random, std::size_t layers, bool any) {
  GraphBuilder builder;
  const auto add = [&](const std::vector<TensorId>& inputs, bool barrier, bool stays) {
    std::vector<TensorId> made{builder.add_tensor(tensor_of(random.between(1, 9)))};
    Op op = op_of(random.between(1, 9), barrier);
    if (!barrier) op.workspace = Bytes(random.between(0, 4));
    if (stays) {
      made.push_back(builder.add_tensor(tensor_of(random.between(1, 3))));
      builder.add_output(made.back());
    }
    builder.add_op(op, inputs, made);
    return made.front();
  };
  std::vector<TensorId> made{builder.add_tensor(tensor_of(3))};
  for (std::size_t i = 0; i < layers; ++i) made.push_back(add({made.back()}, false, false));
  TensorId gradient = add({made.back()}, true, false);
  for (std::size_t i = layers; i > 0; --i) {
    std::vector<TensorId> reads{gradient};
    if (!any || random.chance(0.6)) reads.push_back(made[i - 1]);
    if (any && random.chance(0.6)) reads.push_back(made[i]);
    gradient = add(reads, false, any && random.chance(0.4));
  }
  builder.add_output(gradient);
  return builder.build();
}

TEST_CASE("rotor: on training chains the optimum of all plans") {
  for (int i = 0; i < (kSanitized ? 5 : 30); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = uneven_chain(random, 3, false);
    const LevelCase level(graph, no_partition(graph));
    for (const auto& schedule : oracle::all_tradeoffs(graph, Order::given)) {
      const auto found = level.solve(*make_rotor(), {{schedule.peak, Bytes::max()}});
      REQUIRE(found.size() == 1);
      CHECK(found[0].found_by == "rotor");
      CHECK(found[0].peak() <= schedule.peak);
      CHECK(found[0].time() == schedule.duration);
    }
  }
}

TEST_CASE("rotor: tensors that a backward reads of its layer are held or recomputed") {
  int told = 0, best = 0;
  for (int i = 0; i < (kSanitized ? 5 : 30); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = uneven_chain(random, 3, true);
    const LevelCase level(graph, no_partition(graph));
    for (const auto& schedule : oracle::all_tradeoffs(graph, Order::given)) {
      const auto found = level.solve(*make_rotor(), {{schedule.peak, Bytes::max()}});
      ++told;
      if (found.empty()) continue;
      CHECK(found[0].peak() <= schedule.peak);
      CHECK(found[0].time() >= schedule.duration);
      best += found[0].time() == schedule.duration;
    }
  }
  // The others drop what crosses a border and make it again for one of its readers alone, or
  // compute a backward twice.
  CHECK(best * 100 >= told * 95);
}

// Of equal layers whose backward reads what the layer read and what it made, with room for every
// second output, fewer than every other layer run twice.
TEST_CASE("rotor: a held border saves the second run of the layer before") {
  constexpr std::int64_t kLayers = 12, kBytes = 10;
  GraphBuilder builder;
  const auto add = [&](const std::vector<TensorId>& inputs, bool barrier) {
    const TensorId made = builder.add_tensor(tensor_of(kBytes));
    builder.add_op(op_of(barrier ? 0 : 1, barrier), inputs, {made});
    return made;
  };
  std::vector<TensorId> made{builder.add_tensor(tensor_of(kBytes))};
  for (int i = 0; i < kLayers; ++i) made.push_back(add({made.back()}, false));
  TensorId gradient = add({made.back()}, true);
  for (std::size_t i = kLayers; i > 0; --i) gradient = add({gradient, made[i - 1], made[i]}, false);
  builder.add_output(gradient);
  const Graph graph = builder.build();
  const LevelCase level(graph, no_partition(graph));
  // The input, every second output, one between, and two gradients.
  const Bytes room(kBytes * (1 + kLayers / 2 + 1 + 2));
  const auto found = level.solve(*make_rotor(), {{room, Bytes::max()}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].time() < Ticks(2 * kLayers + kLayers / 2));
}

// The given order computes what the next backward reads before the gradient of weights, and holds
// what the layer has read that long.
TEST_CASE("rotor: with a free order the backward of a stage runs in the order with least memory") {
  int told = 0, better = 0;
  for (int i = 0; i < (kSanitized ? 5 : 30); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    GraphBuilder builder;
    const auto add = [&](const std::vector<TensorId>& inputs, bool of_weights = false) {
      const TensorId made = builder.add_tensor(tensor_of(of_weights ? 1 : random.between(4, 9)));
      builder.add_op(op_of(random.between(1, 9), inputs.empty()), inputs, {made});
      if (of_weights) builder.add_output(made);
      return made;
    };
    const TensorId input = builder.add_tensor(tensor_of(3));
    const TensorId weight = builder.add_tensor(tensor_of(1));
    const TensorId first = add({input}), second = add({first, weight});
    const TensorId turn = builder.add_tensor(tensor_of(random.between(4, 9)));
    builder.add_op(op_of(0, true), {second}, {turn});
    const TensorId gradient = add({turn, weight});
    add({turn, first}, true);
    add({gradient, input}, true);
    const Graph graph = builder.build();
    const LevelCase level(graph, no_partition(graph));
    for (const auto& schedule : oracle::all_tradeoffs(graph, Order::free)) {
      const BlockBudget budget{schedule.peak, Bytes::max()};
      const auto found = level.solve(*make_rotor(), {budget}, {}, {}, Order::free);
      REQUIRE(found.size() == 1);
      CHECK(found[0].peak() <= schedule.peak);
      CHECK(found[0].time() == schedule.duration);
      const auto given = level.solve(*make_rotor(), {budget});
      ++told;
      better += given.empty() || given[0].time() > found[0].time();
    }
  }
  CHECK(2 * better > told);
}

TEST_CASE("rotor: the least time of all sequences of steps over blocks with options") {
  check_least_times(*make_rotor());
}

TEST_CASE("rotor: one table serves all budgets of a block") {
  const Graph graph = generate("chain", 60, 3);
  const LevelCase level(graph, partition_by("chain", graph, "blocks=3"), false);
  REQUIRE(level.block->has_backward());
  const BlockOption save = level.block->save_all();
  std::vector<BlockBudget> budgets;
  for (const double peak : {1.0, 0.7})
    for (const double saved : {1.0, 0.6, 0.3})
      budgets.push_back({share_of(save.peak(), peak), share_of(save.saved, saved)});
  const auto found = level.solve(*make_rotor(), budgets);
  REQUIRE(found.size() > 2);
  for (const BlockBudget& budget : budgets) {
    std::optional<Ticks> together;
    for (const BlockOption& option : found)
      if (option.peak() <= budget.peak && option.saved <= budget.saved)
        together = std::min(together.value_or(Ticks::max()), option.time());
    const auto alone = level.solve(*make_rotor(), {budget});
    REQUIRE(alone.empty() == !together.has_value());
    if (together) CHECK(*together <= alone[0].time());
  }
}

TEST_CASE("rotor: long chains, a work limit, and graphs that are no chain") {
  // 1,100 stages, of which neighbours are joined, and only short runs are made again; and fifty,
  // for which there are slots enough.
  for (const std::size_t ops : {2200u, 100u}) {
    if (kSanitized && ops > 100) continue;
    const Graph graph = generate("chain", ops, 1);
    const LevelCase level(graph, no_partition(graph));
    const BlockOption save = level.block->save_all();
    LimitSettings little;
    little.work = 100;
    const auto rotor = make_rotor(ops > 100 ? 40 : 500);
    for (const double share : {0.3, 0.6}) {
      const BlockBudget budget{share_of(save.peak(), share), Bytes::max()};
      const auto found = level.solve(*rotor, {budget});
      REQUIRE(found.size() == 1);
      CHECK(found[0].peak() <= budget.peak);
      if (ops == 100) CHECK(found[0].peak() > share_of(budget.peak, 0.95));
      CHECK(level.solve(*rotor, {budget}, {}, little).empty());
    }
  }
  const Graph layered = generate("layered", 40, 1);
  const LevelCase no_chain(layered, no_partition(layered));
  const solve::hierarchy::BlockTask task{
      .block = *no_chain.block, .level = no_chain.level, .budgets = {}, .known = {}};
  CHECK(make_rotor()->supports(task).reason ==
        "there are no forward and backward halves, between which a chain is held");
}

}  // namespace
}  // namespace lowtide

// Blocks as problems of their own, what they can do, and what is made of that one level up.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/graph/generate.h"
#include "lowtide/graph/make_partition.h"
#include "lowtide/graph/phases.h"
#include "lowtide/plan/plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"
#include "lowtide/solve/hierarchy/block/block_option.h"
#include "lowtide/solve/hierarchy/block/block_problem.h"
#include "lowtide/solve/hierarchy/block/block_solver.h"
#include "lowtide/solve/hierarchy/block/choice.h"
#include "lowtide/solve/hierarchy/block/contraction.h"
#include "lowtide/solve/hierarchy/hiremate/hiremate.h"
#include "lowtide/solve/hierarchy/hiremate/in_order.h"
#include "lowtide/solve/hierarchy/hiremate/option_cache.h"
#include "lowtide/solve/hierarchy/hiremate/solved_blocks.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"
#include "lowtide/solve/sequence/sequence.h"

#include "support/random_graph.h"
#include "support/sketch.h"

namespace lowtide::solve::hierarchy {

namespace {

BlockOption option(std::int64_t time, std::int64_t saved, std::int64_t peak) {
  BlockOption made;
  made.forward_time = Ticks(time);
  made.saved = Bytes(saved);
  made.forward_peak = Bytes(peak);
  return made;
}

std::vector<std::uint8_t> all_rerun(const Graph& graph) {
  return std::vector<std::uint8_t>(graph.op_count(), 1);
}

Partition cut(const Graph& graph, std::string_view name) {
  const partition::PartitionerTable table = partition::make_partitioners();
  const partition::Partitioner* one = table.find(name);
  return *one->partition(graph, Options(one->options()));
}

// These ops in a block of their own, which is number 1.
Partition one_block(const Graph& graph, std::span<const OpId> ops) {
  BlockTree tree(graph.op_count());
  const BlockId id = tree.add(BlockId(0));
  for (const OpId op : ops) tree.block_of[op] = id;
  return make_partition(graph, phases_of(graph), tree);
}

// x -> a -> b -> barrier -> B -> A: B reads a's and b's outputs, A reads a's output and the input.
Graph small_step() {
  return Sketch({5, 10, 20, 0, 1, 2, 3})
      .op({0}, {1}, 7)
      .op({1}, {2}, 8)
      .op({2}, {3}, 1)
      .op({3}, {4}, 0)
      .barrier()
      .op({4, 1, 2}, {5}, 9)
      .op({5, 1, 0}, {6}, 6)
      .keep({6})
      .graph();
}

}  // namespace

TEST_CASE("hierarchy: only Pareto-optimal options stay") {
  const std::vector<BlockOption> kept =
      pareto({option(5, 9, 9), option(6, 9, 9), option(6, 4, 7), option(9, 1, 3), option(9, 2, 3)});
  REQUIRE(kept.size() == 3);
  CHECK(kept[0].peak() == Bytes(9));
  CHECK(kept[1].saved == Bytes(4));
  CHECK(kept[2].saved == Bytes(1));
  BlockOption proven = option(5, 9, 9);
  proven.quickest_within = BlockBudget{Bytes(10), Bytes(10)};
  const std::vector<BlockOption> merged = pareto({option(5, 9, 9), proven});
  REQUIRE(merged.size() == 1);
  CHECK(merged[0].quickest_within == proven.quickest_within);
}

TEST_CASE("hierarchy: on the hull the time for each saved byte rises") {
  const std::vector<BlockOption> options = {option(0, 10, 1), option(3, 9, 1), option(4, 6, 1),
                                            option(20, 0, 1), option(20, 5, 1)};
  CHECK(convex_hull(options) == std::vector<std::size_t>{0, 2, 3});
}

TEST_CASE("hierarchy: options are spread as in HiRemate's section 3.2") {
  // The highest peak, the lowest, the one nearest to their middle, then the middle of the wider
  // gap.
  const std::vector<BlockOption> options = {option(1, 0, 100), option(1, 0, 90), option(1, 0, 55),
                                            option(1, 0, 30),  option(1, 0, 10), option(1, 0, 0)};
  CHECK(spread(options, {0, 1, 2, 3, 4, 5}, 2) == std::vector<std::size_t>{0, 5});
  CHECK(spread(options, {0, 1, 2, 3, 4, 5}, 3) == std::vector<std::size_t>{0, 2, 5});
  CHECK(spread(options, {0, 1, 2, 3, 4, 5}, 4) == std::vector<std::size_t>{0, 2, 3, 5});
  // What is quickest, and what saves least, comes before what is far from the others.
  const std::vector<BlockOption> mixed = {option(3, 9, 100), option(2, 9, 98), option(9, 50, 50),
                                          option(4, 1, 12), option(3, 9, 10)};
  CHECK(spread(mixed, {0, 1, 2, 3, 4}, 4) == std::vector<std::size_t>{0, 1, 3, 4});
  CHECK(shares_of(100, std::vector<std::size_t>{10, 30, 60, 0}) ==
        std::vector<std::size_t>{10, 30, 60, 2});
}

TEST_CASE("hierarchy: figures of a block exclude its border") {
  const Graph graph = small_step();
  // The layers of a and b, with the loss and the barrier outside.
  const std::vector<OpId> ops = {OpId(0), OpId(1), OpId(4), OpId(5)};
  const Partition whole = one_block(graph, ops);
  const BlockProblem block(graph, whole, BlockId(1), ops, all_rerun(graph));
  CHECK(block.rest() == OpId(4));
  CHECK(block.is_forward(OpId(1)));
  CHECK_FALSE(block.is_forward(OpId(2)));
  const BlockOption all = block.save_all();
  CHECK(all.forward_time == Ticks(15));
  CHECK(all.backward_time == Ticks(15));
  // b's output is given, so it is not saved; it is needed all the same.
  CHECK(all.saved == Bytes(10));
  CHECK(all.forward_peak == Bytes(30));
  CHECK(all.backward_peak == Bytes(12 + 3));
  CHECK(all.needs.size() == 2);
  const std::optional<BlockOption> none = block.recompute_all();
  REQUIRE(none.has_value());
  CHECK(none->saved == Bytes(0));
  CHECK(none->time() == Ticks(30 + 15));
  CHECK(none->needs.size() == 1);
}

TEST_CASE("hierarchy: schedules that break a rule are refused by name") {
  const Graph graph = small_step();
  const std::vector<OpId> ops = {OpId(0), OpId(1), OpId(4), OpId(5)};
  const Partition whole = one_block(graph, ops);
  const BlockProblem block(graph, whole, BlockId(1), ops, all_rerun(graph));
  const auto refuses = [&](std::vector<OpId> forward, std::vector<OpId> backward,
                           std::string_view why) {
    try {
      block.price(std::move(forward), std::move(backward));
      FAIL("it was priced");
    } catch (const InputError& error) {
      CHECK_MESSAGE(std::string(error.what()).find(why) != std::string::npos, error.what());
    }
  };
  refuses({OpId(0), OpId(7)}, {OpId(2), OpId(3)}, "no such op");
  refuses({OpId(0), OpId(1), OpId(2)}, {OpId(3)}, "backward half");
  refuses({OpId(0)}, {OpId(2), OpId(3)}, "ops outside the block wait");
  refuses({OpId(0), OpId(1)}, {OpId(2)}, "is missing");
  refuses({OpId(1), OpId(0)}, {OpId(2), OpId(3)}, "comes before");
}

TEST_CASE("hierarchy: `after` dependents outside keep an op in the forward half") {
  // x -> a -> loss -> barrier -> A, and b beside it, which A reads and the loss comes after.
  const Graph graph = Sketch({5, 10, 4, 0, 1, 3})
                          .op({0}, {1}, 7)
                          .op({0}, {2}, 3)
                          .op({1}, {3}, 1)
                          .after({1})
                          .op({3}, {4}, 0)
                          .barrier()
                          .op({4, 1, 2}, {5}, 6)
                          .keep({5})
                          .graph();
  const std::vector<OpId> ops = {OpId(0), OpId(1), OpId(4)};
  const Partition whole = one_block(graph, ops);
  const BlockProblem block(graph, whole, BlockId(1), ops, all_rerun(graph));
  CHECK_NOTHROW(block.price({OpId(0), OpId(1)}, {OpId(2)}));
  CHECK_THROWS_AS(block.price({OpId(0)}, {OpId(1), OpId(2)}), InputError);
}

TEST_CASE("hierarchy: the network runs with all combinations of options") {
  Random random(4);
  const BlockSolverTable solvers = make_block_solvers();
  const SolverTable graph_solvers = make_solvers();
  for (int sample = 0; sample < 60; ++sample) {
    RandomGraphSettings settings;
    settings.ops = 4 + random.below(20);
    settings.barrier = 0.15;
    const Graph graph = random_graph(random, settings);
    const Partition partition = cut(graph, sample % 2 == 0 ? "h_partition" : "multilevel");
    BlockSettings how;
    how.solvers = &graph_solvers;
    Limits limits({.seconds = {}, .work = 50'000});
    SolvedBlocks blocks(graph, partition, how, limits);
    const std::vector<const BlockSolver*> asked = {solvers.find("cut"), solvers.find("prices")};
    blocks.solve(asked, limits);
    const Level level = blocks.root(sample % 3 == 0 ? 6 : SIZE_MAX);
    std::vector<std::size_t> chosen;
    for (const Child& child : level.children) chosen.push_back(random.below(child.options.size()));
    for (const Child& child : level.children)
      for (const BlockOption& option : child.options)
        for (std::size_t i = 0; i < child.ops.size(); ++i) {
          const OpId op(i);
          CHECK(child.problem->least_peak(op) <=
                (child.problem->is_forward(op) ? option.forward_peak : option.backward_peak));
        }
    std::vector<LevelStep> steps;
    for (std::size_t i = 0; i < level.nodes.size(); ++i) {
      const LevelNode& node = level.nodes[i];
      steps.push_back({i, node.op.valid() ? 0 : chosen[node.child]});
    }
    const std::vector<OpId> sequence = level.sequence(steps);
    CHECK_FALSE(simulate(graph, plan_from_sequence(graph, sequence)).violation);
    const Problem given{.graph = graph, .budget = Bytes::max(), .order = Order::given};
    const std::vector<OpId> ordered = in_given_order(given, sequence);
    CHECK(follows_order(graph, ordered));
    CHECK(verify(given, plan_from_sequence(graph, ordered)).ok);

    // What a contraction runs is a plan of the network too.
    const BlockProblem network(graph, partition);
    const BlockTask task{.block = network, .level = level, .budgets = {}, .known = {}};
    const Contraction contraction(task, chosen);
    const Problem small{.graph = contraction.graph(), .budget = Bytes::max()};
    const std::vector<OpId> own(contraction.graph().order().begin(),
                                contraction.graph().order().end());
    std::vector<OpId> again = own;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const OpId op = own[random.below(own.size())];
      const auto first = std::ranges::find(again, op);
      const auto behind = static_cast<std::size_t>(again.end() - first);
      if (contraction.graph().recomputable(op))
        again.insert(first + 1 + static_cast<std::ptrdiff_t>(random.below(behind)), op);
    }
    if (verify(small, plan_from_sequence(contraction.graph(), again)).ok)
      CHECK(verify(Problem{.graph = graph, .budget = Bytes::max()},
                   plan_from_sequence(graph, contraction.spelled_out(again)))
                .ok);
  }
}

TEST_CASE("hierarchy: a choice by prices is optimal except for its last step") {
  const SolverTable graph_solvers = make_solvers();
  const BlockSolverTable solvers = make_block_solvers();
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Graph graph = generate("resnet", 150, seed);
    const Partition partition = cut(graph, "h_partition");
    BlockSettings how;
    how.solvers = &graph_solvers;
    how.saves = 2;
    Limits limits;
    SolvedBlocks blocks(graph, partition, how, limits);
    const std::vector<const BlockSolver*> asked = {solvers.find("cut")};
    blocks.solve(asked, limits);
    const Level level = blocks.root(SIZE_MAX);
    const BlockProblem network(graph, partition);
    // Every combination of options on the hulls.
    std::vector<std::vector<std::size_t>> hulls;
    std::size_t combinations = 1;
    for (const Child& child : level.children) {
      hulls.push_back(convex_hull(child.options));
      combinations *= hulls.back().size();
    }
    if (combinations > 5000) continue;
    const auto priced = [&](std::size_t number) {
      std::vector<LevelStep> steps;
      std::vector<std::size_t> chosen;
      for (const auto& hull : hulls) {
        chosen.push_back(hull[number % hull.size()]);
        number /= hull.size();
      }
      for (std::size_t i = 0; i < level.nodes.size(); ++i)
        steps.push_back({i, level.nodes[i].op.valid() ? 0 : chosen[level.nodes[i].child]});
      return simulate(graph, plan_from_sequence(graph, level.sequence(steps))).cost;
    };
    std::vector<Cost> costs;
    for (std::size_t i = 0; i < combinations; ++i) costs.push_back(priced(i));
    Ticks longest;
    for (std::size_t c = 0; c < hulls.size(); ++c)
      for (std::size_t i = 1; i < hulls[c].size(); ++i)
        longest = std::max(longest, level.children[c].options[hulls[c][i]].time() -
                                        level.children[c].options[hulls[c][i - 1]].time());
    for (const int share : {95, 85, 75}) {
      const Bytes budget(own_peak(graph).count() * share / 100);
      Ticks best = Ticks::max();
      for (const Cost& cost : costs)
        if (cost.peak <= budget) best = std::min(best, cost.duration);
      const std::vector<BlockBudget> budgets = {{budget, Bytes::max()}};
      const BlockTask task{.block = network, .level = level, .budgets = budgets, .known = {}};
      Choice choice(task, limits);
      const bool within = choice.run(budgets.front());
      CHECK(within == (best < Ticks::max()));
      if (!within) continue;
      const Cost cost = simulate(graph, plan_from_sequence(graph, choice.sequence())).cost;
      CHECK(cost.peak <= budget);
      CHECK(cost.duration <= best + longest);
    }
  }
}

TEST_CASE("hierarchy: equal blocks are solved once") {
  const SolverTable solvers = make_solvers();
  const auto classes = [&](std::size_t ops) {
    const Graph graph = generate("transformer", ops, 7);
    const Partition partition = cut(graph, "h_partition");
    BlockSettings how;
    how.solvers = &solvers;
    Limits limits;
    return SolvedBlocks(graph, partition, how, limits).class_count();
  };
  CHECK(classes(4000) <= classes(1000) + 2);
}

TEST_CASE("hierarchy: the option cache is read, and a changed file is ignored") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("lowtide-test-" + std::to_string(getpid()));
  const char* before = std::getenv("LOWTIDE_CACHE");
  const std::string asked = before == nullptr ? "" : before;
  setenv("LOWTIDE_CACHE", folder.c_str(), 1);
  const Graph graph = small_step();
  const std::vector<OpId> ops = {OpId(0), OpId(1), OpId(4), OpId(5)};
  const Partition whole = one_block(graph, ops);
  const BlockProblem block(graph, whole, BlockId(1), ops, all_rerun(graph));
  const Level level;
  const BlockTask task{.block = block, .level = level, .budgets = {}, .known = {}};
  const std::vector<std::int64_t> key = {1, 2, 3}, other = {1, 2, 4};
  const OptionCache cache(task, key, "mine", 1);
  CHECK_FALSE(cache.read());
  std::vector<BlockOption> kept = {block.save_all(), *block.recompute_all()};
  kept[1].quickest_within = BlockBudget{Bytes(12), Bytes(3)};
  cache.write(kept, 77);
  const auto found = cache.read();
  REQUIRE(found);
  REQUIRE(found->options.size() == 2);
  CHECK(found->options[1].time() == block.recompute_all()->time());
  CHECK_FALSE(found->options[0].quickest_within);
  CHECK(found->options[1].quickest_within == kept[1].quickest_within);
  CHECK(found->work == 77);
  CHECK_FALSE(OptionCache(task, other, "mine", 1).read());
  CHECK_FALSE(OptionCache(task, key, "another", 1).read());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) - 6);
  }
  CHECK_FALSE(cache.read());
  // A pipe of that name is nothing to wait for, and is replaced.
  for (const auto& entry : std::filesystem::directory_iterator(folder / "blocks")) {
    const std::filesystem::path path = entry.path();
    std::filesystem::remove(path);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    break;
  }
  CHECK_FALSE(cache.read());
  cache.write(kept, 77);
  CHECK(cache.read());
  std::filesystem::remove_all(folder);
  asked.empty() ? unsetenv("LOWTIDE_CACHE") : setenv("LOWTIDE_CACHE", asked.c_str(), 1);
}

}  // namespace lowtide::solve::hierarchy

#include "solve/level_case.h"

#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/generate.h"
#include "lowtide/graph/make_partition.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide {

using namespace solve::hierarchy;

LevelCase::LevelCase(Graph graph_, const Partition& partition_, bool whole)
    : graph(std::move(graph_)), partition(partition_) {
  BlockId around = Partition::root();
  for (const BlockId id : partition.blocks.ids())
    if (!whole && id != Partition::root() && partition.blocks[id].backward.op_count() > 0) {
      around = id;
      break;
    }
  whole = around == Partition::root();
  std::vector<std::uint8_t> reruns;
  for (const std::size_t deadline : solve::rerun_deadlines(graph, graph.order()))
    reruns.push_back(deadline == graph.op_count());
  const auto ops_of = [&](const Block& of) {
    std::vector<OpId> ops;
    for (const Half* half : {&of.forward, &of.backward})
      ops.insert(ops.end(), partition.ops(*half).begin(), partition.ops(*half).end());
    return ops;
  };
  const Block& outer = partition.blocks[around];
  std::vector<OpId> local(graph.op_count());
  std::vector<OpId> ops = ops_of(outer);
  for (std::size_t i = 0; i < ops.size(); ++i) local[ops[i].index()] = whole ? ops[i] : OpId(i);
  block = whole ? std::make_unique<BlockProblem>(graph, partition)
                : std::make_unique<BlockProblem>(graph, partition, around, ops, reruns);
  std::vector<std::size_t> child_of(partition.blocks.size(), SIZE_MAX);
  const auto add = [&](const Half& half, bool forward) {
    for (const BlockPart& part : half.parts) {
      LevelNode node;
      if (part.op.valid()) {
        node.op = local[part.op.index()];
      } else {
        std::size_t& child = child_of[part.block.index()];
        if (child == SIZE_MAX) {
          child = level.children.size();
          const auto inside = ops_of(partition.blocks[part.block]);
          const BlockProblem problem(graph, partition, part.block, inside, reruns);
          options.push_back({problem.save_all()});
          if (auto other = problem.recompute_all()) options.back().push_back(std::move(*other));
          level.children.emplace_back();
          for (const OpId op : inside) level.children.back().ops.push_back(local[op.index()]);
        }
        node.kind = forward ? LevelNode::Kind::forward : LevelNode::Kind::backward;
        node.child = child;
      }
      level.nodes.push_back(node);
    }
  };
  add(outer.forward, true);
  if (block->has_backward()) level.nodes.push_back({LevelNode::Kind::rest, block->rest(), 0});
  add(outer.backward, false);
  for (std::size_t c = 0; c < options.size(); ++c) level.children[c].options = options[c];
}

std::vector<BlockOption> LevelCase::solve(const BlockSolver& solver,
                                          std::vector<BlockBudget> budgets,
                                          const std::vector<BlockOption>& known,
                                          const LimitSettings& limits, Order order) const {
  const BlockTask task{
      .block = *block, .level = level, .budgets = budgets, .known = known, .order = order};
  const solve::Support support = solver.supports(task);
  CAPTURE(support.reason);
  REQUIRE(support.yes);
  Limits own(limits);
  const auto found = solver.solve(task, own);
  for (const BlockOption& option : found) {
    const BlockOption again = block->price(option.forward, option.backward);
    CHECK(again.time() == option.time());
    CHECK(again.saved == option.saved);
    CHECK(again.peak() == option.peak());
    CHECK(again.needs == option.needs);
  }
  return found;
}

Partition no_partition(const Graph& graph) {
  return make_partition(graph, phases_of(graph), BlockTree(graph.op_count()));
}

Partition partition_by(std::string_view name, const Graph& graph, std::string_view settings) {
  const auto table = solve::partition::make_partitioners();
  const auto* one = table.find(name);
  REQUIRE(one != nullptr);
  solve::Options options(one->options());
  while (!settings.empty()) {
    const std::string_view word = settings.substr(0, settings.find(' '));
    settings.remove_prefix(std::min(settings.size(), word.size() + 1));
    options.set(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  }
  auto partition = one->partition(graph, options);
  REQUIRE(partition.has_value());
  return std::move(*partition);
}

std::optional<Ticks> least_time(const LevelCase& level, BlockBudget budget,
                                std::size_t most_again) {
  std::optional<Ticks> best;
  std::vector<LevelStep> steps;
  const auto count = [&](std::size_t node) {
    const LevelNode& it = level.level.nodes[node];
    return it.op.valid() ? 1 : level.level.children[it.child].options.size();
  };
  const auto price = [&] {
    try {
      const BlockOption option = level.block->price(level.level.sequence(steps));
      if (option.peak() <= budget.peak && option.saved <= budget.saved &&
          (!best || option.time() < *best))
        best = option.time();
    } catch (const InputError&) {
    }
  };
  // What else runs in a phase: nodes before its own, in their order.
  std::function<void(std::size_t, std::size_t, std::size_t)> go =
      [&](std::size_t phase, std::size_t from, std::size_t left) {
        if (phase == level.level.nodes.size()) return price();
        for (std::size_t option = 0; option < count(phase); ++option) {
          steps.push_back({phase, option});
          go(phase + 1, 0, left);
          steps.pop_back();
        }
        for (std::size_t node = from; left > 0 && node < phase; ++node)
          for (std::size_t option = 0; option < count(node); ++option) {
            steps.push_back({node, option});
            go(phase, node + 1, left - 1);
            steps.pop_back();
          }
      };
  go(0, 0, most_again);
  return best;
}

Bytes share_of(Bytes bytes, double share) {
  return Bytes(static_cast<std::int64_t>(share * static_cast<double>(bytes.count())));
}

void check_least_times(const solve::hierarchy::BlockSolver& solver) {
  int told = 0;
  for (const char* kind : {"chain", "resnet"})
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      CAPTURE(std::string(kind));
      CAPTURE(seed);
      const Graph graph = generate(kind, 30, seed);
      const LevelCase level(graph, partition_by("chain", graph, "blocks=3"));
      for (const double share : {0.5, 0.7, 0.9}) {
        const BlockBudget budget{share_of(level.block->save_all().peak(), share), Bytes::max()};
        const auto truth = least_time(level, budget, 1);
        const auto found = level.solve(solver, {budget});
        REQUIRE(found.size() == (truth ? 1 : 0));
        if (!truth) continue;
        ++told;
        CHECK(found[0].time() == *truth);
        CHECK(found[0].peak() <= budget.peak);
      }
    }
  CHECK(told > 5);
}

}  // namespace lowtide

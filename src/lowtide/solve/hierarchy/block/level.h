// A level: a block whose inner blocks are nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/solve/hierarchy/block/block_option.h"
#include "lowtide/solve/hierarchy/block/block_problem.h"

namespace lowtide::solve::hierarchy {

// An inner block with its options. The ids in its options are those of its own problem.
struct Child {
  std::span<const BlockOption> options;  // at least one
  // Indices of the options among which a program should choose if its size grows with their number.
  std::vector<std::size_t> chosen;
  std::vector<OpId> ops;                  // its op i is op ops[i] of the outer block
  const BlockProblem* problem = nullptr;  // of the options

  // The tensors of the outer graph for those of its problem.
  std::vector<TensorId> tensors(const Graph& around) const;
};

struct LevelNode {
  enum class Kind : std::uint8_t { op, forward, backward, rest };
  Kind kind = Kind::op;
  OpId op;                // for op and rest
  std::size_t child = 0;  // for forward and backward: the child
};

// A step at a level: a node, and for a half of a child the option with which it runs.
struct LevelStep {
  std::size_t node = 0, option = 0;
  bool operator==(const LevelStep&) const = default;
};

// The most scheduled() ops of a level for solvers that visit every op of every option.
inline constexpr std::size_t kMostScheduled = 400'000;

struct Level {
  // The forward nodes in topological order, `rest` if the block has it, then the backward nodes.
  // For the whole network: all nodes, without `rest`.
  std::vector<LevelNode> nodes;
  std::vector<Child> children;
  // If known: the most bytes in use while each op runs, if the nodes run once in this order with
  // all tensors saved.
  std::vector<Bytes> once;

  // The number of ops in all schedules of all options: the cost of visiting each once.
  std::size_t scheduled() const;
  // The ops that the steps compute, in order.
  std::vector<OpId> sequence(std::span<const LevelStep> steps) const;
};

}  // namespace lowtide::solve::hierarchy

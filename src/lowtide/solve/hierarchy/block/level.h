// A block one level up: what its halves run, where blocks inside it are nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/solve/hierarchy/block/block_option.h"
#include "lowtide/solve/hierarchy/block/block_problem.h"

namespace lowtide::solve::hierarchy {

// A block inside, with what it can do; the ids of its options are its own.
struct Child {
  std::span<const BlockOption> options;  // at least one
  // Numbers of those of them that a program whose size grows with their number should choose among.
  std::vector<std::size_t> chosen;
  std::vector<OpId> ops;                  // its op i is this op of the block around it
  const BlockProblem* problem = nullptr;  // whose options these are

  // Of the tensors of its problem: which they are in the graph around it.
  std::vector<TensorId> tensors(const Graph& around) const;
};

struct LevelNode {
  enum class Kind : std::uint8_t { op, forward, backward, rest };
  Kind kind = Kind::op;
  OpId op;                // for op and rest
  std::size_t child = 0;  // for forward and backward: whose half it is
};

// What is run at a level: a node, and for a half of a child with which of its options.
struct LevelStep {
  std::size_t node = 0, option = 0;
  bool operator==(const LevelStep&) const = default;
};

// Of a level for solvers that look at every op of every option.
inline constexpr std::size_t kMostScheduled = 400'000;

struct Level {
  // The forward nodes in a topological order, `rest` if the block has it, then the backward ones.
  // Of the whole network all nodes, without `rest`.
  std::vector<LevelNode> nodes;
  std::vector<Child> children;
  // Where it is known: bytes in use at most while each op runs, if the nodes run once in this order
  // and save all.
  std::vector<Bytes> once;

  // Ops in all schedules of all options: what it takes to look at each once.
  std::size_t scheduled() const;
  // The ops that the steps compute one after the other.
  std::vector<OpId> sequence(std::span<const LevelStep> steps) const;
};

}  // namespace lowtide::solve::hierarchy

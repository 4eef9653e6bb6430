// A level as an ordinary graph, one option of each block inside being fixed. Private to the block
// solvers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

// Its ops are the nodes of the level; halves of children are single ops, between which the bytes
// that the option saves are a tensor (the phantom nodes of HiRemate's appendix B). Workspace is
// what the option needs at its peak beside what it saves and gives. What the rest of the graph may
// not run again and waits for nothing inside its block, such as a draw of random numbers, stands
// before the half as an op of its own; a half with other such ops runs once.
class Contraction {
 public:
  // `options`: of each child. `task` must outlive it.
  Contraction(const BlockTask& task, std::span<const std::size_t> options);

  const Graph& graph() const { return *graph_; }
  // The ops of the block that these ops of the contraction compute; what serves nothing is left
  // out.
  std::vector<OpId> spelled_out(std::span<const OpId> sequence) const;

 private:
  struct Part {
    OpId op;                            // alone
    const std::vector<OpId>* schedule;  // or a half: ids of the child
    std::size_t child = 0;
  };

  class Builder;

  const BlockTask& task_;
  std::vector<Part> parts_;           // of each op
  std::vector<std::uint8_t> lifted_;  // ops of the block that stand before their half
  std::optional<Graph> graph_;
};

}  // namespace lowtide::solve::hierarchy

// A level as an ordinary graph, with a fixed option of each inner block. Private to the block
// solvers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

// The ops of the graph are the nodes of the level. Halves of children are single ops; the bytes
// that the option saves are a tensor between the two (the phantom nodes of HiRemate's appendix B).
// The workspace is the need of the option at its peak, without the bytes that it saves and outputs.
// Some ops of a half may not be recomputed but depend on nothing inside their block, such as random
// draws: they become separate ops before the half. A half with other ops that are not recomputable
// runs once.
class Contraction {
 public:
  // `options`: one for each child. `task` must outlive this object.
  Contraction(const BlockTask& task, std::span<const std::size_t> options);

  const Graph& graph() const { return *graph_; }
  // The ops of the block that these ops of the contraction compute, without those that no later op
  // needs.
  std::vector<OpId> spelled_out(std::span<const OpId> sequence) const;

 private:
  struct Part {
    OpId op;                            // a single op
    const std::vector<OpId>* schedule;  // or a half: ids of the child
    std::size_t child = 0;
  };

  class Builder;

  const BlockTask& task_;
  std::vector<Part> parts_;           // by op
  std::vector<std::uint8_t> lifted_;  // ops of the block that come before their half
  std::optional<Graph> graph_;
};

}  // namespace lowtide::solve::hierarchy

// The blocks of a partition with what each of them can do, solved from the inside out. Equal blocks
// are solved once. Private to the solver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lowtide/base/id_vector.h"
#include "lowtide/base/limits.h"
#include "lowtide/graph/blocks.h"
#include "lowtide/graph/partition.h"
#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

enum class Choosing : std::uint8_t { peaks, prices };  // the paper's way; by the convex hull

struct BlockSettings {
  std::size_t options =
      100;  // N_o: at each level, of all blocks inside, that programs choose among
  std::size_t peaks = 4, saves = 6;
  std::size_t levels = 0;  // counted from the root; what lies deeper is no block. 0: all
  Choosing choosing = Choosing::peaks;
  bool keep = false;  // on disk, of solvers for which that pays: what is found depends on the disk
  const SolverTable* solvers = nullptr;
  std::uint64_t seed = 0;
  int threads = 1;
};

class SolvedBlocks {
 public:
  // Both must outlive it. Where the limits end before all is looked at, what is left is no block.
  SolvedBlocks(const Graph& graph, const Partition& partition, const BlockSettings& settings,
               Limits& limits);

  // Asks these of every block but the root, with what the blocks inside can do by then. At the
  // first time, to save all and to recompute all are options of each; wherever limits end, each
  // block has at least the former. False if to ask again would change nothing: no options are new,
  // and nobody who goes on from what there is has run out of its share.
  bool solve(std::span<const BlockSolver* const> solvers, Limits& limits);

  // The root, with all blocks inside that have no more than so many ops; of those one in another,
  // the outer one.
  Level root(std::size_t most_ops) const;
  // Sizes that make a difference for that: from the smallest blocks to those right below the root.
  std::vector<std::size_t> sizes() const;

  std::size_t class_count() const { return classes_.size(); }

 private:
  // Blocks that are equal, solved for the first of them.
  struct Class {
    BlockId first;
    std::size_t height = 0;         // 0: no block inside
    std::vector<OpId> ops;          // of the first, in the order in which they correspond
    std::vector<std::int64_t> key;  // what equal blocks have in common, in other graphs too
    std::unique_ptr<BlockProblem> problem;
    std::vector<BlockOption> options;
  };
  // Classes of one height, which do not depend on one another.
  struct Wave {
    std::vector<std::size_t> classes;
    std::int64_t ops = 0;
  };
  class ClassRun;

  void find_classes(std::span<const std::uint8_t> reruns, Limits& limits);
  std::vector<BlockId> blocks_by_size() const;
  std::vector<std::int64_t> key_of(const BlockForm& form,
                                   std::span<const std::uint8_t> reruns) const;
  std::size_t height_of(BlockId id, const IdVector<BlockId, std::vector<BlockId>>& inside) const;
  bool is_block(BlockId id) const { return class_of_[id] >= 0; }
  void add_nodes(BlockId id, bool forward, std::size_t most_ops, Level& level,
                 IdVector<BlockId, std::size_t>& child_of) const;
  Level level_of(const Class& one) const;
  void choose(Level& level) const;
  std::vector<BlockBudget> budgets(const BlockProblem& problem,
                                   std::span<const BlockOption> options, const Level& level) const;
  std::vector<Wave> waves() const;  // from the inside out
  bool solve_wave(const Wave& wave, std::span<const BlockSolver* const> solvers,
                  const LimitSettings& left, Limits& limits);

  const Graph& graph_;
  const Partition& partition_;
  BlockSettings settings_;
  IdVector<BlockId, std::int32_t> class_of_;  // -1: none, solved with the block around it
  IdVector<BlockId, std::vector<OpId>> ops_;  // as Class::ops, of each block that has a class
  std::vector<Class> classes_;
};

}  // namespace lowtide::solve::hierarchy

// The options of all blocks of a partition, solved from the inside out. Equal blocks are solved
// once. Private to the solver.
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

// peaks: as in the paper; prices: by the convex hull.
enum class Choosing : std::uint8_t { peaks, prices };

struct BlockSettings {
  // N_o: the number of options of all inner blocks of a level together, among which programs
  // choose.
  std::size_t options = 100;
  std::size_t peaks = 4, saves = 6;
  std::size_t levels = 0;  // counted from the root; deeper blocks are dissolved. 0: all levels
  Choosing choosing = Choosing::peaks;
  bool keep = false;  // cache options on disk; results then depend on the cache
  const SolverTable* solvers = nullptr;
  std::uint64_t seed = 0;
  int threads = 1;
};

class SolvedBlocks {
 public:
  // Both must outlive this object. If the limits end first, the remaining blocks are dissolved.
  SolvedBlocks(const Graph& graph, const Partition& partition, const BlockSettings& settings,
               Limits& limits);

  // Calls these solvers for every block but the root, with the present options of its inner blocks.
  // The first call also gives each block the options to save all and to recompute all; if the
  // limits end, each block has at least the first of these. Returns false if a further call would
  // change nothing: there are no new options, and no solver that continues has used up its share.
  bool solve(std::span<const BlockSolver* const> solvers, Limits& limits);

  // The root, with the inner blocks of at most so many ops; of nested ones, the outermost.
  Level root(std::size_t most_ops) const;
  // The values of `most_ops` that give different roots: from the smallest blocks to the children of
  // the root.
  std::vector<std::size_t> sizes() const;

  std::size_t class_count() const { return classes_.size(); }

 private:
  // A class of equal blocks, which is solved for its first block.
  struct Class {
    BlockId first;
    std::size_t height = 0;  // 0: no inner block
    std::vector<OpId> ops;   // of the first block, in the order in which equal blocks correspond
    std::vector<std::int64_t> key;  // properties that equal blocks share, also in other graphs
    std::unique_ptr<BlockProblem> problem;
    std::vector<BlockOption> options;
  };
  // Classes of one height, which are independent.
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
  IdVector<BlockId, std::int32_t> class_of_;  // -1: dissolved into the outer block
  IdVector<BlockId, std::vector<OpId>> ops_;  // as Class::ops, for each block with a class
  std::vector<Class> classes_;
};

}  // namespace lowtide::solve::hierarchy

// An option of a block: one way to run both of its halves, with its time and memory (J. Gusak et
// al., HiRemate, ICML 2025, section 3.2).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/base/ids.h"
#include "lowtide/base/units.h"

namespace lowtide::solve::hierarchy {

// The limits for which a block is solved: the most bytes in use while it runs, and the most bytes
// held between its halves, both counted as in BlockOption.
struct BlockBudget {
  Bytes peak, saved;
  auto operator<=>(const BlockBudget&) const = default;
  bool covers(const BlockBudget& other) const { return other.peak <= peak && other.saved <= saved; }
};

// Ids are those of a BlockProblem's graph. Tensors that cross the border of a block are counted by
// its surroundings, which know how long they are held. So no figure here includes them, with one
// exception: outputs of the forward half count while that half runs.
struct BlockOption {
  // The computations of each half, in order. Either half may compute a forward op, any number of
  // times.
  std::vector<OpId> forward, backward;
  Ticks forward_time, backward_time;
  Bytes saved;                        // held between the halves
  Bytes forward_peak, backward_peak;  // the most bytes in use while that half runs
  // The tensors from outside that the backward half reads and that existed before it, without those
  // that ops outside make in their backward.
  std::vector<TensorId> needs;
  std::string found_by;  // the block solver
  // A budget within which the block solver has proven that no option is faster, if it has.
  std::optional<BlockBudget> quickest_within;

  Ticks time() const { return forward_time + backward_time; }
  Bytes peak() const { return forward_peak > backward_peak ? forward_peak : backward_peak; }
  bool keeps(const BlockBudget& budget) const { return budget.covers({peak(), saved}); }
};

// The options that no other option dominates in time, saved bytes and both peaks. Of equal options
// the first one stays. Sorted by falling peaks, then by time.
std::vector<BlockOption> pareto(std::vector<BlockOption> options);

// The indices of the options that are optimal at some price of a saved byte, by falling saved bytes
// and rising times: all options that a choice by prices can use.
std::vector<std::size_t> convex_hull(std::span<const BlockOption> options);

// At most `most` of the options `from`, as far apart as in the paper: the highest peak, the lowest
// peak, as in its code also the fastest and the one that saves least, then repeatedly the option
// farthest from all chosen ones. Among options of equal peak, the distance is that of the saved
// bytes. By falling peaks.
std::vector<std::size_t> spread(std::span<const BlockOption> options, std::vector<std::size_t> from,
                                std::size_t most);

// The number of options for each of several blocks, of `total`, in proportion to their ops; at
// least two.
std::vector<std::size_t> shares_of(std::size_t total, std::span<const std::size_t> ops);

}  // namespace lowtide::solve::hierarchy

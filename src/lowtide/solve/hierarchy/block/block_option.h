// What a block can do: an option of HiRemate (J. Gusak et al., ICML 2025, section 3.2), one way to
// run both of its halves.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/base/ids.h"
#include "lowtide/base/units.h"

namespace lowtide::solve::hierarchy {

// What a block is to be solved for: the most that may be in use while it runs, and the most that
// may be held between its halves; as BlockOption counts both.
struct BlockBudget {
  Bytes peak, saved;
  auto operator<=>(const BlockBudget&) const = default;
  bool covers(const BlockBudget& other) const { return other.peak <= peak && other.saved <= saved; }
};

// Ids are those of a BlockProblem's graph. What crosses the border of a block belongs to its
// surroundings, which know how long they hold it; so it is in no number here, but for what the
// forward half gives, which counts while that half runs.
struct BlockOption {
  // What each half computes, in order; either may compute a forward op, as often as it likes.
  std::vector<OpId> forward, backward;
  Ticks forward_time, backward_time;
  Bytes saved;                        // held between the halves
  Bytes forward_peak, backward_peak;  // the most that is in use while that half runs
  // Of what crosses the border: what the backward half reads of what was there before it, apart
  // from what ops outside make in their backward.
  std::vector<TensorId> needs;
  std::string found_by;  // the block solver
  // If that has proven that nothing which keeps this is quicker.
  std::optional<BlockBudget> quickest_within;

  Ticks time() const { return forward_time + backward_time; }
  Bytes peak() const { return forward_peak > backward_peak ? forward_peak : backward_peak; }
  bool keeps(const BlockBudget& budget) const { return budget.covers({peak(), saved}); }
};

// Without those than which another is as good in time, saved bytes and both peaks. Of equals the
// first stays; by falling peaks, then by time.
std::vector<BlockOption> pareto(std::vector<BlockOption> options);

// Of options alone those that are the best at some price of a saved byte, by falling saved bytes
// and rising times: all that a choice by prices can use. Their numbers.
std::vector<std::size_t> convex_hull(std::span<const BlockOption> options);

// At most `most` of those, as far apart as the paper has them: the highest peak, the lowest, as in
// its code also the quickest and the one that saves least, then again and again the one that is
// farthest from all that are taken. Of equal peaks, as several limits of saved bytes give them, the
// saved bytes tell how far. By falling peaks.
std::vector<std::size_t> spread(std::span<const BlockOption> options, std::vector<std::size_t> from,
                                std::size_t most);

// How many of `total` options each of several blocks may have, in proportion to their ops, two at
// least.
std::vector<std::size_t> shares_of(std::size_t total, std::span<const std::size_t> ops);

}  // namespace lowtide::solve::hierarchy

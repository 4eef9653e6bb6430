// The duration of a sequence with transfers, updated under many small changes. Three lanes run
// concurrently (docs/reference/cost.md): compute, copies out and copies in, each first in, first
// out.
//
// Only some points matter: where a copy is issued, where a copy is first waited for, and barriers.
// Let x be the time of all computations before such a point, and S the stall time of the compute
// lane until then: the lane reaches the point at x + S. With D and H as the times at which the
// lanes out and in have finished all issued copies,
//
//   copy out      D = max(D, x + S) + its time     and so ends at D
//   fetch         H = max(H, x + S) + its time     and so ends at H
//   wait          S = max(S, its end - x)
//   barrier       S = max(S, D - x, H - x); D and H are at least when it has ended
//
// and the duration is max(x + S, D, H) at the end. These events are in flat arrays, one for each
// block of slots, with x, S, D and H at the start of the block: a change is priced from the first
// changed block on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lowtide::solve::local {

class Lanes {
 public:
  // Events of one item, in order. wait_before: before the item begins, for tensors that it reads or
  // overwrites. wait_after: when it has ended, for tensors that are freed then.
  enum class Kind : std::uint8_t { wait_before, fetch, barrier, copy, wait_after };
  struct Stop {
    double x;            // from the start of the block
    double time;         // of the transfer, or of the barrier
    std::int32_t clock;  // index of the time at which the transfer ends: written by the transfer,
                         // read by a wait
    Kind kind;
  };
  struct Transfer {
    std::int32_t clock;
    double begin, end;
  };

  // Resizes to so many blocks, all of them to be filled.
  void reset(std::size_t blocks);
  void need_clocks(std::size_t count) {
    if (clocks_.size() < count) clocks_.resize(count, 0);
  }
  void mark(std::size_t block) {
    blocks_[block].stale = true;
    if (block < first_stale_) first_stale_ = block;
  }
  // The first block to be filled at or after `block`; the number of blocks if there is none.
  std::size_t stale_from(std::size_t block) const;
  // The events of the block, in order. The caller fills them, and then sets the time of its
  // computations.
  std::vector<Stop>& refill(std::size_t block);
  void filled(std::size_t block, double time) { blocks_[block].time = time; }

  // Prices from the first marked block on; no block may be unfilled.
  double evaluate();

  // By the latest evaluation.
  double end_of(std::int32_t clock) const { return clocks_[static_cast<std::size_t>(clock)]; }
  double begin_of(std::size_t block) const { return marks_[block].x + marks_[block].stall; }
  // Estimates the end of a transfer, until it is priced.
  void guess(std::int32_t clock, double end) { clocks_[static_cast<std::size_t>(clock)] = end; }
  std::size_t block_at(double time) const;  // the last block that begins by then
  const std::vector<Transfer>& out() const { return out_; }
  const std::vector<Transfer>& in() const { return in_; }
  std::int64_t priced() const { return priced_; }  // stops, ever

 private:
  struct Block {
    std::vector<Stop> stops;
    double time = 0;
    bool stale = true;
  };
  struct Mark {
    double x = 0, stall = 0, out = 0, in = 0;
    std::size_t outs = 0, ins = 0;  // issued transfers
  };
  std::vector<Block> blocks_;
  std::vector<Mark> marks_;  // at the start of each block
  std::vector<double> clocks_;
  std::vector<Transfer> out_, in_;
  std::size_t first_stale_ = 0;
  double duration_ = 0;
  std::int64_t priced_ = 0;
};

}  // namespace lowtide::solve::local

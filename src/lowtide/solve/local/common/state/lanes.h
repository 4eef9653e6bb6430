// When a sequence with transfers ends, made for many small changes. Three lanes run beside each
// other (docs/reference/cost.md): compute, copies out and copies in, each first in first out.
//
// Only some items matter: where a copy is issued, where one is first waited for, and barriers. Let
// x be the time of all computations before such a point, and S how long the compute lane has stood
// still until then: it reaches the point at x + S. With D and H for when the lanes out and in have
// done all that was issued,
//
//   copy out      D = max(D, x + S) + its time     and so ends at D
//   fetch         H = max(H, x + S) + its time     and so ends at H
//   wait          S = max(S, its end - x)
//   barrier       S = max(S, D - x, H - x); D and H are at least when it has ended
//
// and the run lasts max(x + S, D, H) at the end. So what happens is kept in flat arrays, one for
// each block of slots, with x, S, D and H as they are at its begin: a change is priced from the
// first block that changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lowtide::solve::local {

class Lanes {
 public:
  // In the order in which they happen at one item. wait_before: before it begins, for what it reads
  // or overwrites. wait_after: when it has ended, for what is freed then.
  enum class Kind : std::uint8_t { wait_before, fetch, barrier, copy, wait_after };
  struct Stop {
    double x;            // from the block's begin
    double time;         // of the transfer, or of the barrier
    std::int32_t clock;  // where the end of the transfer is written, or read by a wait
    Kind kind;
  };
  struct Transfer {
    std::int32_t clock;
    double begin, end;
  };

  // So many blocks, all of them to be filled.
  void reset(std::size_t blocks);
  void need_clocks(std::size_t count) {
    if (clocks_.size() < count) clocks_.resize(count, 0);
  }
  void mark(std::size_t block) {
    blocks_[block].stale = true;
    if (block < first_stale_) first_stale_ = block;
  }
  // The first block to be filled from `block` on; the number of blocks if there is none.
  std::size_t stale_from(std::size_t block) const;
  // What happens in the block, in order, to be written by the caller, who then says how long its
  // computations take.
  std::vector<Stop>& refill(std::size_t block);
  void filled(std::size_t block, double time) { blocks_[block].time = time; }

  // Prices from the first block that was marked; none may be stale.
  double evaluate();

  // As of the latest evaluation.
  double end_of(std::int32_t clock) const { return clocks_[static_cast<std::size_t>(clock)]; }
  double begin_of(std::size_t block) const { return marks_[block].x + marks_[block].stall; }
  // Guesses the end of a transfer, until it is priced.
  void guess(std::int32_t clock, double end) { clocks_[static_cast<std::size_t>(clock)] = end; }
  std::size_t block_at(double time) const;  // the last that begins by then
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
    std::size_t outs = 0, ins = 0;  // transfers issued
  };
  std::vector<Block> blocks_;
  std::vector<Mark> marks_;  // at the begin of each block
  std::vector<double> clocks_;
  std::vector<Transfer> out_, in_;
  std::size_t first_stale_ = 0;
  double duration_ = 0;
  std::int64_t priced_ = 0;
};

}  // namespace lowtide::solve::local

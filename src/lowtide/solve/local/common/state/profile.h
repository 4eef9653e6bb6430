// The bytes in use over the slots of a sequence, updated under many small changes: a range of slots
// gains or loses bytes, and only the excess over the budget matters.
//
// A slot holds a step or is a hole. A hole stores the bytes live between its neighbours, so that it
// can be filled in constant time, minus a large offset (kHole). Slots are grouped in blocks: a
// range that covers a block costs one addition (`lazy`), and a block whose maximum keeps the budget
// is not visited. A block over the budget is summed once, when `over` is read, however many ranges
// have changed it, and not again if the changes are reverted.
//
// Invariants: bytes at a slot = values[slot] + lazy[block] (- kHole in a hole); top[block] = the
// largest of its slots; low[block] <= the least of its steps; above[block] = sum over its steps of
// the bytes above the budget, unless the block is stale; over = sum of all above[block].
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lowtide/base/id_vector.h"
#include "lowtide/solve/local/common/state/kernels.h"
#include "lowtide/solve/local/common/state/slot.h"

namespace lowtide::solve::local {

class Profile {
 public:
  static constexpr std::size_t kBlock = 64;
  // The most bytes of a graph: exact in a double together with the offset of a hole.
  static constexpr double kMostBytes = 0x1p50;
  static constexpr double kHole = 0x1p52;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit Profile(double budget) : budget_(budget), kernels_(kernels()) {}

  // One value for each slot; in holes kHole is already subtracted. The count is a multiple of
  // kBlock.
  void assign(std::vector<double> values);

  double budget() const { return budget_; }
  double over() const {
    if (stale_) settle();
    return over_;
  }
  bool within() const;  // no step exceeds the budget; exact however large `over` was
  double peak() const;
  std::int64_t touched() const { return touched_; }  // blocks looked at, ever

  double at(Slot slot) const { return values_[slot] + lazy_[block(slot)]; }
  void fill(Slot slot, double born);     // a hole becomes a step with this many more bytes
  void vacate(Slot slot, double dying);  // a step becomes a hole with this many fewer bytes
  // For callers that move steps between slots: sets the value; the caller must call `refresh` for
  // these blocks afterwards.
  void set(Slot slot, double value) { values_[slot] = value - lazy_[block(slot)]; }
  void refresh(Slot first, Slot last);

  // Slots first..last; none if first > last.
  void add(Slot first, Slot last, double delta);

  // Changes after this call may be reverted.
  void commit();
  // All changes since the last commit have been reverted by their opposites.
  void reverted();

  // By how much `over` falls if `bytes` are subtracted from each slot, and rises if they are added.
  // Results of `enough` or more may be too small, but not below `enough`.
  double relief(Slot first, Slot last, double bytes, double enough = kNever) const {
    return excess(first, last, budget_, bytes, enough);
  }
  double harm(Slot first, Slot last, double bytes, double enough = kNever) const {
    return harm_once_freed(first, last, bytes, 0, enough);
  }
  // The same after `freed` bytes have been subtracted from each slot.
  double harm_once_freed(Slot first, Slot last, double bytes, double freed,
                         double enough = kNever) const {
    return excess(first, last, budget_ - bytes + freed, bytes, enough);
  }
  // A step over the budget at or after the block of `from`, cyclically; invalid if there is none.
  Slot find_over(Slot from) const;

 private:
  // The state of a block since the last commit. Settled: `above` is as then, or up to date.
  enum class Since : std::uint8_t { untouched, settled, stale };

  static std::size_t block(Slot slot) { return slot.index() / kBlock; }
  void mark(std::size_t b) {
    if (since_[b] == Since::stale) return;
    if (since_[b] == Since::untouched) {
      touched_blocks_.push_back(b);
      committed_above_[b] = above_[b];
    }
    since_[b] = Since::stale;
    stale_ = true;
  }
  // A step enters or leaves the block; after a revert it may be in another one.
  void mark_moved(std::size_t b) {
    mark(b);
    committed_above_[b] = kMoved;
  }
  void settle() const;
  void settle(std::size_t b) const;
  double excess(Slot first, Slot last, double level, double cap, double enough) const;
  void add_part(Slot first, Slot last, double delta);
  void refresh_top(std::size_t b);
  void find_low(std::size_t b) const;
  // Whether all steps of a block are at least at this level; false if that takes too long to
  // decide.
  bool all_at(std::size_t b, double level) const {
    if (low_[b] < level && top_[b] - spread_[b] >= level) find_low(b);
    return low_[b] >= level;
  }

  double budget_;
  const Kernels& kernels_;
  IdVector<Slot, double> values_;
  std::vector<double> lazy_, top_;  // by block
  // By block: a lower bound on its steps; the difference of maximum and minimum when they were last
  // computed; and the number of steps.
  mutable std::vector<double> low_, spread_;
  std::vector<std::int32_t> steps_;
  mutable std::vector<double> above_;
  mutable std::vector<Since> since_;
  std::vector<std::size_t> touched_blocks_;
  // For touched blocks: the value at the last commit, or kMoved.
  std::vector<double> committed_above_;
  static constexpr double kMoved = -1;
  mutable bool stale_ = false;  // whether some block is stale
  mutable double over_ = 0;
  double committed_over_ = 0;
  mutable std::int64_t touched_ = 0;
};

}  // namespace lowtide::solve::local

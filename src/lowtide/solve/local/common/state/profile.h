// Bytes in use over the slots of a sequence, made for many small changes: a range of slots gains or
// loses bytes, and what matters is only how far slots stand above the budget.
//
// A slot holds a step or is a hole. A hole knows the bytes that stand there between two steps, so
// that a step can be put into it at once, but lies far below every budget until then. Slots come in
// blocks: a range that covers a block costs one addition (`lazy`), and a block whose largest value
// stays within the budget is never looked into. One that exceeds it is summed once, when `over` is
// asked for, however many ranges have changed it, and not again where the changes are reverted.
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
  // Bytes that a graph may have in use: with a hole's offset they stay exact in a double.
  static constexpr double kMostBytes = 0x1p50;
  static constexpr double kHole = 0x1p52;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit Profile(double budget) : budget_(budget), kernels_(kernels()) {}

  // Takes one value for each slot, kHole already taken off in holes. A multiple of kBlock.
  void assign(std::vector<double> values);

  double budget() const { return budget_; }
  double over() const {
    if (stale_) settle();
    return over_;
  }
  bool within() const;  // no step is above the budget; exact however large `over` has been
  double peak() const;
  std::int64_t touched() const { return touched_; }  // blocks looked at, ever

  double at(Slot slot) const { return values_[slot] + lazy_[block(slot)]; }
  void fill(Slot slot, double born);     // a hole becomes a step with so many bytes more
  void vacate(Slot slot, double dying);  // a step becomes a hole with so many bytes less
  // For whoever moves steps to other slots: the value is set, and `refresh` must follow for the
  // blocks concerned.
  void set(Slot slot, double value) { values_[slot] = value - lazy_[block(slot)]; }
  void refresh(Slot first, Slot last);

  // Slots first..last, none if first > last.
  void add(Slot first, Slot last, double delta);

  // From here on changes may be reverted.
  void commit();
  // Each change since the last commit has been reverted by its opposite.
  void reverted();

  // By how much `over` would fall if `bytes` were taken from each slot, and rise if they were
  // added. What is no less than `enough` may be returned too small, but not below that.
  double relief(Slot first, Slot last, double bytes, double enough = kNever) const {
    return excess(first, last, budget_, bytes, enough);
  }
  double harm(Slot first, Slot last, double bytes, double enough = kNever) const {
    return harm_once_freed(first, last, bytes, 0, enough);
  }
  // The same where `freed` bytes have been taken from each slot before.
  double harm_once_freed(Slot first, Slot last, double bytes, double freed,
                         double enough = kNever) const {
    return excess(first, last, budget_ - bytes + freed, bytes, enough);
  }
  // A step above the budget at `from` or in a later block, around the end; not valid if there is
  // none.
  Slot find_over(Slot from) const;

 private:
  // Of a block since the last commit. Settled: its `above` is what it was then, or is up to date.
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
  // A step comes to the block or leaves it: once reverted it may stand in another one.
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
  // Whether all steps of a block are at least at this level; no, if that takes too long to see.
  bool all_at(std::size_t b, double level) const {
    if (low_[b] < level && top_[b] - spread_[b] >= level) find_low(b);
    return low_[b] >= level;
  }

  double budget_;
  const Kernels& kernels_;
  IdVector<Slot, double> values_;
  std::vector<double> lazy_, top_;  // by block
  // By block: a lower bound on its steps, how far the largest was above the least when they were
  // last looked at, and how many they are.
  mutable std::vector<double> low_, spread_;
  std::vector<std::int32_t> steps_;
  mutable std::vector<double> above_;
  mutable std::vector<Since> since_;
  std::vector<std::size_t> touched_blocks_;
  // As of the last commit, of touched blocks, or kMoved.
  std::vector<double> committed_above_;
  static constexpr double kMoved = -1;
  mutable bool stale_ = false;  // some block is
  mutable double over_ = 0;
  double committed_over_ = 0;
  mutable std::int64_t touched_ = 0;
};

}  // namespace lowtide::solve::local

// The budgets of live bytes under which to look for a plan whose footprint keeps another budget.
// Private to the room.
//
//   floor .. no plan found .. | ........ to be tried ........ | .. plans take too much .. budget
//   proven                  empty                           missed
//
// Plans of fewer live bytes mostly take less. So the next budget is lower by the ratio of what the
// last plan took, if that is between both borders, otherwise the middle; last comes the lowest one,
// of which the plan has the least live bytes. Where plans fit, `fitted` is the lower border, since
// larger budgets have shorter plans.
//
// What is taken is not monotone in the live bytes. So when nothing is left between the borders and
// nothing has fitted, all budgets from the least live bytes on are tried once more, evenly spread,
// by whoever looks with other seeds.
#pragma once

#include <cstdint>
#include <optional>

#include "lowtide/base/units.h"

namespace lowtide::driver {

class LiveBudgets {
 public:
  explicit LiveBudgets(Bytes budget) : budget_(budget), next_(budget), missed_(budget) {}

  Bytes next() const { return next_; }
  // Nothing is left between the borders: what is tried now was tried before.
  bool exhausted() const { return exhausted_; }

  // What came of the budget `next`, and the choice of another one. `floor`: proven, no plan has
  // less.
  void none(Bytes floor);
  void fits();
  // Of the plans that are as good the one that takes least has this peak. `smallest`: the peak of
  // the shortest plan, below which another one must be.
  void misses(Bytes peak, Bytes taken, Bytes smallest);

 private:
  void choose(std::optional<Bytes> guess);

  Bytes budget_, next_;
  Bytes missed_;             // the smallest for which plans took too much
  Bytes floor_, empty_{-1};  // proven; the largest for which none was found
  std::optional<Bytes> fitted_;
  std::optional<Bytes> least_;  // the smallest peak of a plan
  bool exhausted_ = false, lowest_tried_ = false;
  std::int64_t repeats_ = 0;
};

}  // namespace lowtide::driver

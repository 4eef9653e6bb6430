// Both algorithms of Kumar et al. divide the graph recursively and may stop early, at a limit of
// the size of a component: then they recompute less and need more memory. RecursionLimits tries
// limits and makes plans of the schedules (Kumar et al., NeurIPS 2019, section 4.3).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::solve::kumar {

class RecursionLimits {
 public:
  // A schedule of the recursion with a limit. The producers of an op's inputs come before the op.
  struct Schedule {
    double length;          // computations
    std::vector<OpId> ops;  // empty if there are more than `most`
  };
  // Makes the schedule for a limit. Empty if the schedule is too long to be counted, or if the
  // context stops.
  using Scheduler = std::function<std::optional<Schedule>(std::size_t limit, std::size_t most)>;

  // `filters`: recomputations are removed as the budget allows (repetition_filter.h); otherwise
  // schedules are offered unchanged. `limit`: the only limit to try; 0: powers of two, down from
  // about the number of bags.
  RecursionLimits(Context& context, bool filters, std::size_t limit)
      : context_(context), filters_(filters), limit_(limit) {}

  // Offers the given order. False if that settles the problem.
  bool begin();
  // Tries the limits of one scheduler, then improves the best of its plans. Long schedules are
  // postponed.
  void run(Scheduler scheduler, std::size_t bags);
  // Improves the best plan of all schedulers that were run.
  void improve_best();
  // Filters the postponed schedules, one limit of each scheduler at a time. A schedule that is too
  // long for the filter is offered unchanged.
  void run_next_long();
  // The same, but only until a plan within the budget exists: a long schedule may be the only one
  // that fits.
  void run_long_until_feasible();
  bool has_long() const { return filters_ && !too_long_.empty(); }
  // Without a plan, offers the given order, since the answer reports the smallest peak seen.
  void offer_own_order();
  // A reason why there is no plan, for the note; may be empty.
  std::string why_no_plan() const;

 private:
  struct Candidate {
    Ticks duration;
    std::size_t scheduler, limit;
    bool improved = false;
    bool operator<(const Candidate& other) const { return duration < other.duration; }
  };
  // Postponed: schedules for this limit and for smaller ones, in powers of the step. `size` is the
  // length of the schedule before.
  struct TooLong {
    std::size_t scheduler, limit, step, size;
  };

  // An empty sequence stands for a schedule that is longer, but not too long to be made.
  std::optional<std::vector<OpId>> sequence(std::size_t scheduler, std::size_t limit,
                                            std::size_t most);
  bool attempt(std::size_t limit, std::size_t step);
  bool attempt_long(TooLong& what);
  bool fill(const std::vector<OpId>& sequence, std::size_t scheduler, std::size_t limit);
  void improve(Candidate& candidate);
  // The longest schedule that is not postponed.
  std::size_t most_items() const;

  Context& context_;
  bool filters_;
  std::size_t limit_, last_size_ = 0;
  std::vector<Scheduler> schedulers_;
  std::vector<Candidate> candidates_;
  std::vector<TooLong> too_long_;
  bool left_out_ = false;  // some schedule was too long to be made
};

}  // namespace lowtide::solve::kumar

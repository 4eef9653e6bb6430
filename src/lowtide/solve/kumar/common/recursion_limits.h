// Both algorithms of Kumar et al. divide the graph recursively and may stop early, at a limit of
// the size of a part: stopping early computes less again and needs more memory. This tries limits
// and makes plans of the schedules (Kumar et al., NeurIPS 2019, section 4.3).
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
  // A schedule of the recursion stopped at a limit, in which the makers of what an op reads stand
  // somewhere before it.
  struct Schedule {
    double length;          // computations
    std::vector<OpId> ops;  // empty if there are more than `most`
  };
  // Makes the schedule for a limit. Nothing if it is too long even to be counted, or if the context
  // says stop.
  using Scheduler = std::function<std::optional<Schedule>(std::size_t limit, std::size_t most)>;

  // `filters`: whether repetitions are removed as the budget allows (repetition_filter.h), or
  // schedules are offered as they are. `limit`: the only limit to try; 0: from about the number of
  // bags down, in powers of two.
  RecursionLimits(Context& context, bool filters, std::size_t limit)
      : context_(context), filters_(filters), limit_(limit) {}

  // Offers the graph's own order. False if that settles the problem.
  bool begin();
  // Tries the limits of one scheduler, then improves the best plan that came of it. Schedules that
  // would take long to filter are put off.
  void run(Scheduler scheduler, std::size_t bags);
  // Improves the best plan of all schedulers that were run.
  void improve_best();
  // Takes up what was put off, one limit of each scheduler: filters the schedule, or offers it as
  // it is if it is too long to be filtered at all.
  void run_next_long();
  // The same until there is a plan within the budget: a long schedule may be the only one that
  // fits.
  void run_long_until_feasible();
  bool has_long() const { return filters_ && !too_long_.empty(); }
  // Without a plan, offers the graph's own order: the smallest peak seen is told with the answer.
  void offer_own_order();
  // For a note where there is no plan; else empty.
  std::string why_no_plan() const;

 private:
  struct Candidate {
    Ticks duration;
    std::size_t scheduler, limit;
    bool improved = false;
    bool operator<(const Candidate& other) const { return duration < other.duration; }
  };
  // Schedules for this limit and smaller ones, in powers of the step, were too long to be filtered
  // with the others. `size` is that of the one before.
  struct TooLong {
    std::size_t scheduler, limit, step, size;
  };

  // A sequence that is empty is a schedule that is longer, if not too long for anything.
  std::optional<std::vector<OpId>> sequence(std::size_t scheduler, std::size_t limit,
                                            std::size_t most);
  bool attempt(std::size_t limit, std::size_t step);
  bool attempt_long(TooLong& what);
  bool fill(const std::vector<OpId>& sequence, std::size_t scheduler, std::size_t limit);
  void improve(Candidate& candidate);
  // How long a schedule is filtered with the others.
  std::size_t most_items() const;

  Context& context_;
  bool filters_;
  std::size_t limit_, last_size_ = 0;
  std::vector<Scheduler> schedulers_;
  std::vector<Candidate> candidates_;
  std::vector<TooLong> too_long_;
  bool left_out_ = false;  // some schedule was too long for anything
};

}  // namespace lowtide::solve::kumar

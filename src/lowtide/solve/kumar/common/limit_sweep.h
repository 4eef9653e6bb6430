// Plans from schedules whose recursion may be stopped early: what both solvers of Kumar et al. do
// once they can make a schedule.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::solve::kumar {

class LimitSweep {
 public:
  // For a limit of the recursion, every op's makers before it; written down only if it has no more
  // than `most` computations. Nothing if it is not even to be counted, or the context says stop.
  struct Schedule {
    double length;
    std::vector<OpId> ops;
  };
  using Scheduler = std::function<std::optional<Schedule>(std::size_t limit, std::size_t most)>;

  // `filters`: whether values are held as the budget allows, or schedules are offered as they are.
  // `limit`: this one alone; 0: from about `bags` down, in powers.
  LimitSweep(Context& context, bool filters, std::size_t limit)
      : context_(context), filters_(filters), limit_(limit) {}

  // Looks at the graph in its own order; false if there is nothing more to do.
  bool begin();
  // Tries the limits of one scheduler, then improves the best that came of it.
  void run(Scheduler scheduler, std::size_t bags);
  // Improves the best of all that were run.
  void improve_best();
  // Of each scheduler whose smaller limits give schedules too long to be filtered with the others,
  // the next. It is offered as it is if it is too long to be filtered at all.
  void try_long();
  // The same until there is a plan: what is long may be all that fits.
  void seek_plan();
  bool has_long() const { return filters_ && !too_long_.empty(); }
  // What fits as it is has a plan at last, whatever was found.
  void finish();
  // For a note where there is no plan; else empty.
  std::string why_no_plan() const;

 private:
  struct Lead {
    Ticks duration;
    std::size_t scheduler, limit;
    bool improved = false;
    bool operator<(const Lead& other) const { return duration < other.duration; }
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
  void improve(Lead& lead);
  // How long a schedule is filtered with the others.
  std::size_t most_items() const;

  Context& context_;
  bool filters_;
  std::size_t limit_, last_size_ = 0;
  std::vector<Scheduler> schedulers_;
  std::vector<Lead> leads_;
  std::vector<TooLong> too_long_;
  bool left_out_ = false;  // some schedule was too long for anything
};

}  // namespace lowtide::solve::kumar

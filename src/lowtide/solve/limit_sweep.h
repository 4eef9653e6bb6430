// Plans from schedules whose recursion may be stopped early: what both solvers of Kumar et al. do
// once they can make a schedule.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/solve/context.h"

namespace lowtide {

class LimitSweep {
 public:
  // The schedule for a limit of the recursion, every op's makers before it. Nothing if it would
  // have more than so many computations, or the context says stop.
  using Scheduler =
      std::function<std::optional<std::vector<OpId>>(std::size_t limit, std::size_t most)>;

  // `filters`: whether values are held as the budget allows, or schedules are offered as they are.
  // `limit`: this one alone; 0: from about `bags` down, in powers.
  LimitSweep(Context& context, bool filters, std::size_t limit)
      : context_(context), filters_(filters), limit_(limit) {}

  // Looks at the graph in its own order; false if there is nothing more to do.
  bool begin();
  // Tries the limits of one scheduler, then improves the best that came of it.
  void run(Scheduler scheduler, std::size_t bags);
  // Improves the best of all once more. What fits as it is has a plan at last, whatever was found.
  void finish();

 private:
  struct Lead {
    Ticks duration;
    std::size_t scheduler, limit;
    bool operator<(const Lead& other) const { return duration < other.duration; }
  };

  std::optional<std::vector<OpId>> sequence(std::size_t scheduler, std::size_t limit);
  bool attempt(std::size_t limit);
  void improve(const Lead& lead);

  Context& context_;
  bool filters_;
  std::size_t limit_, last_size_ = 0;
  std::vector<Scheduler> schedulers_;
  std::vector<Lead> leads_;
};

}  // namespace lowtide

// The table of the phases of `auto`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lowtide/driver/auto/task.h"

namespace lowtide::driver {

class AutoState;

enum class When : std::uint8_t {
  once,           // before the first epoch, one task after the other
  alone,          // first in each epoch, with all threads
  before_search,  // in each epoch; beside the search with a time limit and several threads
  search,         // last in each epoch
};

struct Phase {
  std::string_view name, summary;
  When when;
  // Of the remaining limits, at most. For before_search and search: of the work of a lane.
  double share;
  bool (*due)(const AutoState&);
  // Called when the phase is due.
  std::vector<Task> (*tasks)(AutoState&, double share);
};

// In the order in which the phases run.
std::span<const Phase> phases();

}  // namespace lowtide::driver

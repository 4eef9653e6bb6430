// What `auto` does, and when: the table of its phases.
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
  alone,          // in each epoch, with all threads
  before_search,  // in each epoch; under a clock and with several threads beside the search
  search,         // in each epoch
};

struct Phase {
  std::string_view name, summary;
  When when;
  // Of what is left of the limits, at most; before_search and search: of the work of a lane.
  double share;
  bool (*due)(const AutoState&);
  // Called when it is due.
  std::vector<Task> (*tasks)(AutoState&, double share);
};

// In the order in which they run.
std::span<const Phase> phases();

}  // namespace lowtide::driver

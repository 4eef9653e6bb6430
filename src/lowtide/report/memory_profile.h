// The live bytes over the steps of a run.
#pragma once

#include <span>

#include "lowtide/base/units.h"

namespace lowtide::report {

struct MemoryProfile {
  Bytes start;                  // before the first step
  std::span<const Bytes> live;  // during each step
};

}  // namespace lowtide::report

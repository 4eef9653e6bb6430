// The links between a device and its host, as far as a plan's duration depends on them.
#pragma once

#include "lowtide/base/units.h"

namespace lowtide {

// A transfer of n bytes takes latency + ceil(n x ticks / bytes).
struct Link {
  Ticks latency;
  Bytes bytes{1};  // > 0
  Ticks ticks;

  Ticks transfer_time(Bytes size) const {
    return checked_add(latency, Ticks(checked_mul_div(size.count(), ticks.count(), bytes.count(),
                                                      Rounding::ceil)));
  }
  bool operator==(const Link&) const = default;
};

struct Machine {
  Link device_to_host, host_to_device;
  bool operator==(const Machine&) const = default;
};

}  // namespace lowtide

// The links between a device and its host, in the form that determines a plan's duration.
#pragma once

#include "lowtide/base/units.h"
#include "lowtide/device/link.h"
#include "lowtide/graph/graph.h"

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

// Such a link each way, in ticks of that unit: the bandwidth as an exact fraction in lowest terms,
// the latency rounded up. Throws InputError (place "link") for the units flop and none.
Machine machine_of(const LinkSpeed& speed, TickUnit tick);

// The same links with the share `share` (below 1) of their bandwidth reserved for other traffic.
// The latency stays. Exact, in lowest terms. Throws OverflowError if that needs more than 63 bits.
Machine derated(const Machine& machine, const Share& share);

}  // namespace lowtide

// What a machine can do: its rates, its memory and its links. Plain data: built in (cards.h), or
// read from a file (io/device_json.h), into which measured rates come too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/device/link.h"

namespace lowtide {

// Operations a second for one number type, dense; a multiply-add is two.
struct ComputeRate {
  std::string dtype;  // as graph files write it; "tf32": what convolutions of f32 tensors run in
  std::int64_t operations_per_second = 0;  // > 0
  bool operator==(const ComputeRate&) const = default;
};

struct Device {
  std::string name;                   // as --device takes it
  std::string title;                  // for people; may be empty
  std::vector<ComputeRate> rates;     // has one of f32
  std::int64_t bytes_per_second = 0;  // of the device's own memory; > 0
  std::int64_t launch_ns = 0;         // what any kernel takes, however small
  // What small kernels lose (part_price.h): the time that computing and moving take until they run
  // at their rates, and among how many multiprocessors a product's tiles are dealt; 0: nothing.
  std::int64_t compute_ramp_ns = 0, memory_ramp_ns = 0, multiprocessors = 0;
  // Are the rates what kernels were seen to reach, or a data sheet's, of which they reach a share?
  bool measured = false;
  Bytes memory;                        // 0: not said
  std::optional<LinkSpeed> host_link;  // each way; absent: no copies to the host
  std::optional<LinkSpeed> peer_link;  // to other devices, one way; latency: of a collective's call

  // A number type without a rate of its own (integers, complex numbers) counts as f32.
  std::int64_t rate(std::string_view dtype) const;
  bool operator==(const Device&) const = default;
};

}  // namespace lowtide

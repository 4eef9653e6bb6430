// A description of a machine: its rates, its memory and its links. Plain data: built in (cards.h),
// or read from a file (io/device_json.h), which may contain measured rates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/device/link.h"

namespace lowtide {

// Operations per second in one number type, dense; a multiply-add is two.
struct ComputeRate {
  std::string dtype;  // as in graph files; "tf32": for convolutions of f32 tensors
  std::int64_t operations_per_second = 0;  // > 0
  bool operator==(const ComputeRate&) const = default;
};

struct Device {
  std::string name;                   // the argument of --device
  std::string title;                  // for display; may be empty
  std::vector<ComputeRate> rates;     // includes f32
  std::int64_t bytes_per_second = 0;  // of the device's own memory; > 0
  std::int64_t launch_ns = 0;         // of any kernel, however small
  // Figures of small kernels (part_price.h): the ramps of computing and moving, and the number of
  // multiprocessors among which the tiles of a product are distributed; 0: no effect.
  std::int64_t compute_ramp_ns = 0, memory_ramp_ns = 0, multiprocessors = 0;
  // Whether the rates are measured; otherwise they are a data sheet's, of which kernels reach a
  // share.
  bool measured = false;
  Bytes memory;                        // 0: unknown
  std::optional<LinkSpeed> host_link;  // each way; absent: no copies to the host
  // To other devices, one way; its latency is that of a collective.
  std::optional<LinkSpeed> peer_link;

  // A number type without a rate (integers, complex numbers) counts as f32.
  std::int64_t rate(std::string_view dtype) const;
  bool operator==(const Device&) const = default;
};

}  // namespace lowtide

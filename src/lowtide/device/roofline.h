// The time of one kernel on a device by the roofline model; nothing is measured.
//
//     time = launch + max(operations / rate, bytes / bandwidth), in whole ns, rounded up,
//
// where rate and bandwidth are a fixed share of the data sheet's: what large matrix products and
// streaming kernels of vendor libraries commonly reach. An estimate for planning: it orders ops
// rightly (matrix products against pointwise ones, large against small) and is off by tens of per
// cent for a single op. It loses on ops that neither compute nor stream, such as embedding
// gradients with many equal indices, and it knows no workspace.
//
// Source: Williams, Waterman, Patterson: Roofline: an insightful visual performance model for
// multicore architectures, 2009.
#pragma once

#include <cstdint>
#include <string_view>

#include "lowtide/device/device.h"

namespace lowtide {

inline constexpr double kComputeShare = 0.6, kMemoryShare = 0.8;

// ns of a kernel that does so many operations in that number type and reads and writes so many
// bytes; neither is negative. OverflowError if they do not fit into 63 bits.
std::int64_t kernel_ns(const Device& device, std::int64_t operations, std::string_view dtype,
                       std::int64_t bytes);

// ns of a collective that sends so many bytes to other devices, or gets so many: latency + bytes /
// rate of the peer link. InputError if the device has none.
std::int64_t collective_ns(const Device& device, std::int64_t bytes);

}  // namespace lowtide

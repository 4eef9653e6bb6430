// The time of one kernel that fills a device, by the roofline model.
//
//     time = launch + max(operations / rate, bytes / bandwidth), in whole ns, rounded up,
//
// where rate and bandwidth are a fixed share of the data sheet's: what large matrix products and
// streaming kernels of vendor libraries commonly reach; all of them where the device was measured.
// An estimate for planning: it orders ops rightly (matrix products against pointwise ones, large
// against small) and is off by tens of per cent for a single op. It loses on ops that neither
// compute nor stream, such as embedding gradients with many equal indices, and it knows no
// workspace.
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

// The same with what a kernel loses that is too small to fill the device:
//
//     time = launch + max(ramp + waves x operations / rate + sums / bandwidth,
//                         ramp' + bytes / bandwidth),
//
// each side only where there is something to do. A ramp is the time in which the work that is done
// at full rate would be half done (Hockney's n_1/2, as time). `waves` is by how much whole rounds
// of tiles over the multiprocessors take longer than the share of a round that is needed. A tile is
// part of the result, from 128 x 128 down to 32 x 32, over all of the depth or one of up to 16
// slices of it, 512 deep or more, which are summed up afterwards: `sums` is what that moves. That
// choice counts which ends first: small tiles fill rounds better and reuse less of what they read.
// Source: Hockney, Jesshope: Parallel Computers 2, 1988, section 1.3; NVIDIA: Matrix Multiplication
// Background User's Guide, sections 2.3 and 3.2.
struct Work {
  std::int64_t operations = 0, bytes = 0;
  // Of what a product makes; no tiles where rows are 0.
  std::int64_t batches = 1, rows = 0, columns = 0;
};
std::int64_t small_kernel_ns(const Device& device, const Work& work, std::string_view dtype);

// ns of a collective that sends so many bytes to other devices, or gets so many: latency + bytes /
// rate of the peer link. InputError if the device has none.
std::int64_t collective_ns(const Device& device, std::int64_t bytes);

}  // namespace lowtide

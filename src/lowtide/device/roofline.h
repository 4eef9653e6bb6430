// The time of one kernel that fills a device, by the roofline model.
//
//     time = launch + max(operations / rate, bytes / bandwidth), in whole ns, rounded up,
//
// where rate and bandwidth are a fixed share of the data sheet's: the share that large matrix
// products and streaming kernels of vendor libraries commonly reach; for measured devices the full
// rates. The estimate orders ops correctly (matrix products and pointwise ops, large and small) and
// is off by tens of per cent for a single op. It loses on ops that neither compute nor stream, such
// as embedding gradients with many equal indices, and it has no workspace.
//
// Source: Williams, Waterman, Patterson: Roofline: an insightful visual performance model for
// multicore architectures, 2009.
#pragma once

#include <cstdint>
#include <string_view>

#include "lowtide/device/device.h"

namespace lowtide {

inline constexpr double kComputeShare = 0.6, kMemoryShare = 0.8;

// The ns of a kernel with so many operations in that number type that reads and writes so many
// bytes; neither is negative. Throws OverflowError if they exceed 63 bits.
std::int64_t kernel_ns(const Device& device, std::int64_t operations, std::string_view dtype,
                       std::int64_t bytes);

// The same for kernels that are too small to fill the device:
//
//     time = launch + max(ramp + waves x operations / rate + sums / bandwidth,
//                         ramp' + bytes / bandwidth),
//
// A side without operations or bytes is 0. A ramp is the time that a kernel loses before it runs at
// the full rate (Hockney's n_1/2, as a time). `waves` is the ratio of whole rounds of tiles over
// the multiprocessors to the share of the rounds that is used. A tile is a piece of the result,
// from 128 x 128 down to 32 x 32, over the whole depth or over one of up to 16 slices of it (512
// deep or more), which are summed afterwards; `sums` are the bytes moved for that. The choice with
// the least time counts: small tiles fill rounds better, but reuse less of the data they read.
// Source: Hockney, Jesshope: Parallel Computers 2, 1988, section 1.3; NVIDIA: Matrix Multiplication
// Background User's Guide, sections 2.3 and 3.2.
struct Work {
  std::int64_t operations = 0, bytes = 0;
  // The size of the result of a product; no tiles if rows are 0.
  std::int64_t batches = 1, rows = 0, columns = 0;
};
std::int64_t small_kernel_ns(const Device& device, const Work& work, std::string_view dtype);

// The ns of a collective that sends or receives so many bytes: latency + bytes / rate of the peer
// link. Throws InputError if the device has none.
std::int64_t collective_ns(const Device& device, std::int64_t bytes);

}  // namespace lowtide

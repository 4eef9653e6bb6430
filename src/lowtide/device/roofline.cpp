// Each operation on doubles is rounded once and none is fused, so every machine gets the same ns.
#include "lowtide/device/roofline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lowtide/base/error.h"

namespace lowtide {

namespace {

std::int64_t whole_ns(double seconds, std::int64_t fixed) {
  const double ns = std::ceil(seconds * 1e9);
  if (!(ns < 0x1p63)) detail::throw_overflow();
  return checked_add(Ticks(fixed), Ticks(static_cast<std::int64_t>(ns))).count();
}

double computing(const Device& device, std::int64_t operations, std::string_view dtype) {
  const double share = device.measured ? 1 : kComputeShare;
  return static_cast<double>(operations) / (share * static_cast<double>(device.rate(dtype)));
}
double moving(const Device& device, std::int64_t bytes) {
  const double share = device.measured ? 1 : kMemoryShare;
  return static_cast<double>(bytes) / (share * static_cast<double>(device.bytes_per_second));
}

struct Tile {
  double rows, columns;
};
constexpr Tile kTiles[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64},
                           {64, 32},   {32, 64},  {32, 32}};

// How fast a multiprocessor works on such a tile, of what it does on the largest: it reads rows +
// columns values for rows x columns products, and reading one takes as long as kReuse products.
double efficiency(const Tile& tile) {
  constexpr double kReuse = 32;
  const auto per_product = [](const Tile& one) {
    return 1 + kReuse * (1 / one.rows + 1 / one.columns);
  };
  return per_product(kTiles[0]) / per_product(tile);
}

// Seconds of what is computed, by the tiles and slices of the depth that end first.
double in_rounds(const Device& device, const Work& work, std::string_view dtype) {
  constexpr double kMostSlices = 16, kShallowest = 512, kSumBytes = 8;
  const double full = computing(device, work.operations, dtype);
  const auto processors = static_cast<double>(device.multiprocessors);
  if (processors == 0 || work.rows == 0 || work.columns == 0 || work.batches == 0) return full;
  const auto rows = static_cast<double>(work.rows), columns = static_cast<double>(work.columns),
             batches = static_cast<double>(work.batches);
  const double made = batches * rows * columns;
  const double depth = static_cast<double>(work.operations) / 2 / made;
  // What has one column is no product of matrices.
  const double most = columns > 1 ? std::min(kMostSlices, depth / kShallowest) : 1;
  double least = std::numeric_limits<double>::infinity();
  for (double slices = 1; slices == 1 || slices <= most; slices *= 2) {
    const double sums =
        slices > 1 ? moving(device, 1) * kSumBytes * slices * made : 0;  // written and read again
    for (const Tile& tile : kTiles) {
      const double dealt =
          batches * slices * std::ceil(rows / tile.rows) * std::ceil(columns / tile.columns);
      const double waves = std::ceil(dealt / processors) * processors / dealt / efficiency(tile);
      least = std::min(least, std::max(waves, 1.0) * full + sums);
    }
  }
  return least;
}

}  // namespace

std::int64_t kernel_ns(const Device& device, std::int64_t operations, std::string_view dtype,
                       std::int64_t bytes) {
  return whole_ns(std::max(computing(device, operations, dtype), moving(device, bytes)),
                  device.launch_ns);
}

std::int64_t small_kernel_ns(const Device& device, const Work& work, std::string_view dtype) {
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  double longest = 0;
  if (work.operations > 0)
    longest = seconds(device.compute_ramp_ns) + in_rounds(device, work, dtype);
  if (work.bytes > 0)
    longest = std::max(longest, seconds(device.memory_ramp_ns) + moving(device, work.bytes));
  return whole_ns(longest, device.launch_ns);
}

std::int64_t collective_ns(const Device& device, std::int64_t bytes) {
  if (!device.peer_link)
    throw InputError("device " + device.name,
                     "has no link to other devices, so a collective has no price; its file may say "
                     "\"peer_link\"");
  return whole_ns(
      static_cast<double>(bytes) / static_cast<double>(device.peer_link->bytes_per_second),
      device.peer_link->latency_ns);
}

}  // namespace lowtide

#include "lowtide/layout/allocator/sizes.h"

#include <algorithm>
#include <bit>

namespace lowtide::layout {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The number of divisions for requests of this size.
std::int64_t divisions_of(std::int64_t requested, const AllocatorSettings& settings) {
  const auto log2 =
      static_cast<std::ptrdiff_t>(std::bit_width(static_cast<std::uint64_t>(requested))) - 1;
  const auto& of = settings.roundup_divisions;
  return of.at(
      static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(log2 - 20, 0, std::ssize(of) - 1)));
}

}  // namespace

Bytes block_size(Bytes requested, const AllocatorSettings& settings) {
  const std::int64_t bytes = requested.count(), unit = kSmallestBlock.count();
  if (bytes < unit) return kSmallestBlock;
  const std::int64_t divisions = divisions_of(bytes, settings);
  if (divisions <= 1 || bytes / unit < divisions || bytes == unit * divisions)
    return Bytes(round_up(bytes, unit));
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  return Bytes(round_up(bytes, power / divisions));
}

Bytes segment_size(Bytes block, const AllocatorSettings& settings) {
  if (block <= kLargestSmall) return kSmallSegment;
  if (block.count() < 10 * kMiB.count()) return settings.large_segment;
  return Bytes(round_up(block.count(), 2 * kMiB.count()));
}

}  // namespace lowtide::layout

// The sizes that the caching allocator gives to requests.
#pragma once

#include "lowtide/layout/allocator/settings.h"

namespace lowtide::layout {

inline constexpr Bytes kSmallestBlock{512};
// Blocks of up to this size come from segments of their own, of kSmallSegment.
inline constexpr Bytes kLargestSmall = kMiB;
inline constexpr Bytes kSmallSegment{2 << 20};

// The block for a request of so many bytes.
Bytes block_size(Bytes requested, const AllocatorSettings& settings);

// The segment that is reserved when no cached block serves a block of this size.
Bytes segment_size(Bytes block, const AllocatorSettings& settings);

}  // namespace lowtide::layout

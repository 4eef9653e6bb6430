// The settings of PyTorch's caching allocator for CUDA, as its own string gives them
// (PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lowtide/base/units.h"

namespace lowtide::layout {

inline constexpr Bytes kMiB{1 << 20};

struct AllocatorSettings {
  bool expandable_segments = false;
  // A segment for requests of 1 to 10 MiB, and a page of expandable segments.
  Bytes large_segment{20 << 20};
  // Larger blocks are never split; absent: every block may be.
  std::optional<Bytes> max_split_size;
  // By how much a block that is never split may exceed the request it serves.
  Bytes max_non_split_rounding{20 << 20};
  // Of requests of up to 2 MiB, from 2 to 4 MiB, ..., from 32 GiB: into how many equal parts the
  // range from one power of two to the next is divided; sizes are rounded up to one of them.
  // 0 and 1: rounded up to 512 bytes.
  std::array<std::int64_t, 16> roundup_divisions{};
  // Cached segments are given back from this share of the allowed memory on; 0: never.
  double garbage_collection_threshold = 0;
  // The share of the device's memory that the process may reserve. Garbage collection works below 1
  // only.
  double memory_fraction = 1;

  bool operator==(const AllocatorSettings&) const = default;
};

// Reads such a string, "expandable_segments:True,max_split_size_mb:128". What PyTorch 2.13 refuses
// is refused; so are an asynchronous backend, which is not modelled, and what PyTorch takes by
// accident: numbers with letters behind them, commas for colons. Keys that do not bear on the
// memory of the device are checked, and change nothing. Throws InputError, which says the key, the
// place and what would be right.
AllocatorSettings parse_allocator_settings(std::string_view text);

// The shortest string that gives these settings; empty for the defaults.
std::string to_string(const AllocatorSettings& settings);

}  // namespace lowtide::layout

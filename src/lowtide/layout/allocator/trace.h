// What a program asks of an allocator, in order.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/layout/allocator/blocks.h"

namespace lowtide::layout {

struct TraceEvent {
  enum class Kind : std::uint8_t {
    allocate,     // `id` of `bytes`, for `stream`
    free,         // `id`
    use_on,       // `stream` works with `id`, which another stream allocated
    finish,       // all work of `stream` so far is done
    empty_cache,  // what is cached goes back to the device
    end_step,     // of training: the peaks of each step are counted apart
  };
  Kind kind;
  std::int64_t id = 0;  // any number; free again after its free
  Bytes bytes{};
  Stream stream = 0;
  bool operator==(const TraceEvent&) const = default;
};

using Trace = std::vector<TraceEvent>;

}  // namespace lowtide::layout

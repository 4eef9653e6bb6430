// How much an engine may take. Private to the room.
#pragma once

#include <cstdint>

namespace lowtide::engines {

// Bytes that this machine has free, no more than the container's limit; 0 if it does not say.
std::int64_t free_memory();
// Bytes of this process's own, touched or not: what RLIMIT_DATA counts; 0 if it cannot be known.
std::int64_t own_memory();

}  // namespace lowtide::engines

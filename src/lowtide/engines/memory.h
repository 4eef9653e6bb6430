// The memory that an engine may take. Private to the room.
#pragma once

#include <cstdint>

namespace lowtide::engines {

// The bytes that this machine has free, at most the container's limit; 0 if unknown.
std::int64_t free_memory();
// The bytes of this process, touched or not, as RLIMIT_DATA counts them; 0 if unknown.
std::int64_t own_memory();

}  // namespace lowtide::engines

// Runs tasks on several threads; the only code that starts threads for computing.
#pragma once

#include <cstddef>
#include <functional>

namespace lowtide {

// Runs task(i) once for each i below `count`, in that order as threads become free: the caller's
// and up to `threads` - 1 others, or fewer if the system refuses. After an exception no further
// task begins. When all have ended, the exception of the smallest i is rethrown.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& task);

}  // namespace lowtide

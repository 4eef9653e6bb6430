// Tasks on several threads: the one place that starts threads to compute.
#pragma once

#include <cstddef>
#include <functional>

namespace lowtide {

// Runs task(i) once for each i below `count`, in that order as threads come free: the caller's and
// up to `threads` - 1 others, or as many as the system grants. After an exception no further task
// begins; once all have ended, that of the smallest i is thrown.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& task);

}  // namespace lowtide

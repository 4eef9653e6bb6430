// Indices of networks have 32 bits. Private to the solver.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lowtide::solve::bounds {

inline std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
inline std::int32_t small(std::size_t i) { return static_cast<std::int32_t>(i); }

}  // namespace lowtide::solve::bounds

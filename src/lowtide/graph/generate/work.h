// Sizes and operations. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

namespace lowtide::networks {

std::int64_t elements(const std::vector<std::int64_t>& shape);

// Operations of a matrix product: one multiplication and one addition for each pair of factors.
inline double multiply_add(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) *
         static_cast<double>(columns);
}

}  // namespace lowtide::networks

// Groups a list of transforms for display: consecutive substitutions form one group, because there
// are often many.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lowtide/transforms/transform.h"

namespace lowtide {

// In order, none empty.
std::vector<std::span<const Transform>> together(std::span<const Transform> transforms);

// Describes one group: as describe(Transform), or "substitutions: 4 by merge_products, 8 by
// add_into_product".
std::string describe(std::span<const Transform> together);

}  // namespace lowtide

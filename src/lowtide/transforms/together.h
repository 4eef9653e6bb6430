// Lists of transforms as people read them: one by one, but substitutions that follow one another,
// of which there are many, as one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lowtide/transforms/transform.h"

namespace lowtide {

// In order, none empty.
std::vector<std::span<const Transform>> together(std::span<const Transform> transforms);

// Of one of these: as of the transform that it is, or "substitutions: 4 by merge_products, 8 by
// add_into_product".
std::string describe(std::span<const Transform> together);

}  // namespace lowtide

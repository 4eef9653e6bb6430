// All rules, each in a file of its own. Private to the folder.
#pragma once

#include "lowtide/transforms/substitution.h"

namespace lowtide {

extern const Rule kAbsorbTranspose, kAddIntoProduct, kCatOfSlices, kMergeProducts, kOtherSide,
    kSliceOfCat, kSplitProduct;

}  // namespace lowtide

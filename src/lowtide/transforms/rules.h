// Apply a split or a hoist to a draft (substitutions: substitutes.h). Private to the folder. `now`
// is the graph of the draft. Throws TransformRefused if the transform is illegal on it, and
// InputError (with a JSON pointer into the transform) if a price is missing.
#pragma once

#include <cstddef>

#include "lowtide/transforms/draft.h"
#include "lowtide/transforms/region.h"

namespace lowtide {

// In the file's indices; of ids of `now`. Both must outlive it.
Labels labels_in_file(const Draft& draft, const TransformedGraph& now);

void do_transform(Draft& draft, const TransformedGraph& now, const Split& split, std::size_t index);
void do_transform(Draft& draft, const TransformedGraph& now, const Hoist& hoist, std::size_t index);

}  // namespace lowtide

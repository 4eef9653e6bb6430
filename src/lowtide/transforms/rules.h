// What splits and hoists do to a draft; substitutes.h is for the rest. Private to the folder. `now`
// is the graph of what the draft holds; TransformRefused if the transform is not legal on it,
// InputError (place: a JSON pointer into the transform) if it lacks a price.
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

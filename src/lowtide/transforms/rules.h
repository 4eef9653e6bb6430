// Applies a split or a hoist to a draft (substitutions: substitutes.h). Private to the folder.
// `now` is the graph of the draft. Throws TransformRefused if the transform is illegal on the
// graph, and InputError (with a JSON pointer into the transform) if a price is missing.
#pragma once

#include <cstddef>

#include "lowtide/transforms/draft.h"
#include "lowtide/transforms/region.h"

namespace lowtide {

// Labels with file indices, for ids of `now`. Draft and graph must outlive the labels.
Labels labels_in_file(const Draft& draft, const TransformedGraph& now);

void do_transform(Draft& draft, const TransformedGraph& now, const Split& split, std::size_t index);
void do_transform(Draft& draft, const TransformedGraph& now, const Hoist& hoist, std::size_t index);

}  // namespace lowtide

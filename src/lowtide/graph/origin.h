// Where in a model an op stands, as text: "transformer.h.3.mlp".
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// With '*' for each number that stands alone between separators, so that layers which are alike are
// called alike: "layers.*.conv".
std::string origin_pattern(std::string_view origin);

}  // namespace lowtide

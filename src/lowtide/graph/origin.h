// The origin of an op: the module of the model that contains it, such as "transformer.h.3.mlp".
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// The origin with '*' in place of each number between separators, so that equal layers have equal
// patterns: "layers.*.conv".
std::string origin_pattern(std::string_view origin);

}  // namespace lowtide

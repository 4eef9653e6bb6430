// How the rules of transforms say that one is not legal. Private to the folder.
#pragma once

#include <string>

namespace lowtide {

// TransformRefused, whose place the caller adds.
[[noreturn]] void refuse_transform(std::string reason);

}  // namespace lowtide

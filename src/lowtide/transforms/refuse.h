// Rejects an illegal transform. Private to the folder.
#pragma once

#include <string>

namespace lowtide {

// Throws TransformRefused; the caller adds the place.
[[noreturn]] void refuse_transform(std::string reason);

}  // namespace lowtide

// Whether offsets are a placement. Plain on purpose: it shares nothing with `place`.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "lowtide/base/units.h"
#include "lowtide/layout/buffer.h"

namespace lowtide::layout {

// What is wrong, naming the buffers: an offset that is missing, negative or not aligned, an end
// beyond `height`, two buffers that are live at the same moment and share bytes. A sweep over the
// moments with the live buffers sorted by offset.
std::optional<std::string> check_placement(std::span<const Buffer> buffers,
                                           std::span<const Bytes> offsets, Bytes alignment,
                                           Bytes height);

}  // namespace lowtide::layout

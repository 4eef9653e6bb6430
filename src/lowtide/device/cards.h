// The built-in devices: graphics cards by their vendor's data sheets, and a small CPU.
#pragma once

#include <span>
#include <string_view>

#include "lowtide/device/device.h"

namespace lowtide {

// In alphabetical order. Rates are those of the data sheets, of which roofline.h takes a share.
// Host links have the rate that copies from pinned memory commonly reach, since plans use them
// unchanged.
std::span<const Device> built_in_devices();
const Device* find_built_in_device(std::string_view name);  // null if there is none

}  // namespace lowtide

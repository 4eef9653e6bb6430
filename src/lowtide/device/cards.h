// The devices that are built in: graphics cards by their vendor's data sheets, and a small CPU.
#pragma once

#include <span>
#include <string_view>

#include "lowtide/device/device.h"

namespace lowtide {

// By name, in alphabetical order. Rates are those of the data sheet, which roofline.h takes a share
// of; host links are what copies from pinned memory commonly reach, since plans take them as they
// are.
std::span<const Device> built_in_devices();
const Device* find_built_in_device(std::string_view name);  // null if there is none

}  // namespace lowtide

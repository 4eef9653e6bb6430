// What an instruction takes on a device, by the roofline (device/roofline.h). Private to the room.
#pragma once

#include <cstdint>

#include "lowtide/device/device.h"
#include "lowtide/io/hlo/inside.h"
#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// Nanoseconds. Collectives and copies to the host go over the device's links, if it has them; what
// only renames its operands takes no time. OverflowError beyond 63 bits.
std::int64_t price_of(const Device& device, const Computation& within,
                      const Instruction& instruction, const Work& work);

}  // namespace lowtide::io::hlo

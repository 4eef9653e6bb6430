// The computations of a module, callees first. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// InputError (place: the calling instruction) if a computation calls itself, through others too.
std::vector<std::uint32_t> callees_first(const Module& module);

}  // namespace lowtide::io::hlo

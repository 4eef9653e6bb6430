// How often loops run. Private to the room.
#pragma once

#include <cstdint>
#include <optional>

#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// The number of trips of a while: what XLA states (known_trip_count), or that of a loop which
// counts from one constant to another, as JAX's scans do before optimization. nullopt if neither.
std::optional<std::int64_t> trips_of(const Module& module, const Computation& within,
                                     const Instruction& loop);

}  // namespace lowtide::io::hlo

// The properties in which two blocks must agree to be equal.
#pragma once

#include <cstdint>

namespace lowtide {

// code: all properties that blocks.h lists. plan: only those on which plans depend, so without
// kinds and arguments, operands and results, shapes and number types. Blocks that are equal by
// `plan` have the same plans if their times agree.
enum class Alike : std::uint8_t { code, plan };

}  // namespace lowtide

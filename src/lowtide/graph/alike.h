// In what two blocks must agree to be equal.
#pragma once

#include <cstdint>

namespace lowtide {

// code: in all that blocks.h lists. plan: only in what plans depend on, so not in kinds and
// arguments, operands and results, shapes and number types. Blocks that are alike so have the same
// plans, wherever their times agree.
enum class Alike : std::uint8_t { code, plan };

}  // namespace lowtide

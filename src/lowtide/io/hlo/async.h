// The shapes of asynchronous pairs: which parts of what begins are its operands, and which is what
// ends. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// For each leaf of what a "-start" returns: the leaf of its operands, counted over all of them,
// that it is; or -1 for a new array.
std::vector<std::int64_t> started_leaves(const Computation& within, const Instruction& start);

// The leaves of the operand of a "-done" that its result is; nullopt if none of the operand's
// elements has the shape of the result.
std::optional<std::vector<std::uint32_t>> finished_leaves(std::string_view opcode,
                                                          const Shape& started,
                                                          const Shape& result);

// Of the shape of a "-start" the part that it makes; of other instructions the whole.
const Shape& made_shape(const Instruction& one);

}  // namespace lowtide::io::hlo

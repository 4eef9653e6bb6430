// Counts the operations of instructions; a multiply-add is two. Private to the room.
#pragma once

#include <cstdint>

#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// The numbers in all arrays of the shape.
std::int64_t numbers_of(const Shape& shape);

// Of an instruction that calls nothing; of one that applies a computation to each element (reduce,
// sort), with one operation an application. Custom calls count as matrix products or convolutions
// where their attributes are those of one, else 0. OverflowError beyond 63 bits.
std::int64_t operations_of(const Computation& within, const Instruction& instruction);

}  // namespace lowtide::io::hlo

// Which results XLA can write over operands, by the rules of its buffer assignment. Private to the
// room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lowtide/io/hlo/inside.h"
#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// Whether any result of the instruction can be written over that operand, bytes permitting.
bool can_overwrite(const Computation& within, const Instruction& instruction, std::size_t slot,
                   const std::vector<Inside>& inside);

// A leaf of a result that can be written over a leaf of an operand, and over no other.
struct LeafPair {
  std::size_t slot;
  std::uint32_t operand, result;  // leaves
};
// Of instructions whose results each belong to one operand (sort, scatter, all-reduce), and of
// those that say so (output_to_operand_aliasing). InputError (place in `text`) for an index that
// the shape does not have.
std::vector<LeafPair> own_overwrites(std::string_view text, const Computation& within,
                                     const Instruction& instruction);

// The leaf at an index of a shape; kNone if there is none, or if it is a tuple.
std::uint32_t leaf_at(const Shape& shape, const ShapeIndex& index);

}  // namespace lowtide::io::hlo

#include "lowtide/io/hlo/in_place.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "lowtide/io/hlo/attributes.h"
#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/hlo/opcode.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

bool can_overwrite(const Computation& within, const Instruction& one, std::size_t slot,
                   const std::vector<Inside>& inside) {
  if (one.opcode == "fusion") {
    // A custom fusion is a call of a library.
    return one.attribute("kind") != "kCustom" && inside[one.callee("calls")].over[slot];
  }
  if (one.opcode == "call") return inside[one.callee("to_apply")].over[slot];
  if (one.opcode == "dynamic-update-slice") return slot == 0;
  if (one.opcode == "triangular-solve") return slot == 1;
  const bool each = opcode_of(one.opcode).kind == OpcodeKind::elementwise || one.opcode == "copy";
  const Shape& from = within.instructions[one.operands[slot]].shape;
  return each && from.type == one.shape.type && same_places(from, one.shape);
}

std::uint32_t leaf_at(const Shape& shape, const ShapeIndex& index) {
  const Shape* at = &shape;
  std::uint32_t leaf = 0;
  for (const std::int64_t element : index) {
    if (element < 0 || static_cast<std::size_t>(element) >= at->elements.size()) return kNone;
    at = &at->elements[static_cast<std::size_t>(element)];
    leaf += at->first_leaf;
  }
  return at->is_tuple() ? kNone : leaf;
}

std::vector<LeafPair> own_overwrites(std::string_view text, const Computation& within,
                                     const Instruction& one) {
  std::vector<LeafPair> pairs;
  const std::string_view name = one.opcode;
  if (name == "sort" || name == "all-reduce-start" || name == "scatter") {
    const std::size_t results = one.shape.leaves;
    for (std::size_t slot = 0; slot < std::min(results, one.operands.size()); ++slot)
      if (!within.instructions[one.operands[slot]].shape.is_tuple())
        pairs.push_back({slot, 0, static_cast<std::uint32_t>(slot)});
  }
  const std::string_view stated = one.attribute("output_to_operand_aliasing");
  if (stated.empty()) return pairs;
  const auto at = static_cast<std::size_t>(stated.data() - text.data());
  for (const AliasEntry& alias : parse_aliases(Cursor(text, at))) {
    const auto slot = static_cast<std::size_t>(alias.parameter);
    const std::uint32_t result = leaf_at(one.shape, alias.output);
    const std::uint32_t operand =
        alias.parameter < 0 || slot >= one.operands.size()
            ? kNone
            : leaf_at(within.instructions[one.operands[slot]].shape, alias.index);
    if (result == kNone || operand == kNone)
      Cursor(text).refuse_at(at, "instruction " + quoted(one.name) +
                                     ": output_to_operand_aliasing names an array that it does "
                                     "not have");
    pairs.push_back({slot, operand, result});
  }
  return pairs;
}

}  // namespace lowtide::io::hlo

// Operands are checked to be in the order of the argument's list.
#include "lowtide/transforms/rules/cats.h"

#include <algorithm>

namespace lowtide {

Cat cat_of(const Rewriting& rewriting, OpId id) {
  const Op& op = rewriting.graph().op(id);
  Cat found{.op = id, .result = &rewriting.only_result(id), .parts = {}, .places = {}};
  const Operand& result = *found.result;
  const auto literal = std::ranges::find(op.arguments, "dim", &Argument::name);
  std::int64_t dim = 0;
  if (literal != op.arguments.end())
    if (const auto* number = std::get_if<std::int64_t>(&literal->value.value)) dim = *number;
  const auto rank = std::ssize(result.shape);
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) rewriting.refuse(id, "has no dimension " + std::to_string(dim));
  found.dim = static_cast<std::size_t>(dim);
  std::int64_t next = 0;
  for (const Operand& part : op.operands) {
    found.parts.push_back(&part);
    Operand& place = found.places.emplace_back(result);
    if (part.argument == "tensors" && part.strides.size() == part.shape.size() &&
        part.index == std::ssize(found.parts) - 1 && part.dtype == result.dtype &&
        part.shape.size() == result.shape.size()) {
      place.shape[found.dim] = part.shape[found.dim];
      place.offset = next * result.strides[found.dim];
      if (place.shape == part.shape && part.shape[found.dim] > 0 &&
          part.shape[found.dim] <= result.shape[found.dim] - next) {
        next += part.shape[found.dim];
        continue;
      }
    }
    rewriting.refuse(id, "has operands that do not add up to its result");
  }
  if (next != result.shape[found.dim])
    rewriting.refuse(id, "has operands that do not add up to its result");
  return found;
}

}  // namespace lowtide

// cat_of_slices: the concatenation of all slices of a tensor is the tensor.
//
// Pattern: cat of neighbouring slices of one tensor, in order.
// Replacement: its readers read the tensor, without a copy.
// Loses: if the tensor could otherwise be freed and the slices are only a part of it.
// Bits: may change. The values are the same, but for strided operands kernels may sum in another
// order.
#include <algorithm>

#include "lowtide/transforms/rules/cats.h"
#include "lowtide/transforms/rules/table.h"

namespace lowtide {

namespace {

std::vector<std::vector<OpId>> cats_of_one_tensor(const Graph& graph, OpId anchor) {
  if (graph.inputs(anchor).size() != 1) return {};
  return {{anchor}};
}

void cat_of_slices(Rewriting& rewriting) {
  const Cat cat = cat_of(rewriting, rewriting.only_op());
  const Operand& first = *cat.parts.front();
  Operand all = first;
  all.shape = cat.result->shape;
  // If each slice has extent 1, the stride follows from the offsets of the first two.
  std::int64_t& step = all.strides[cat.dim];
  if (first.shape[cat.dim] == 1 && cat.parts.size() > 1) step = cat.parts[1]->offset - first.offset;
  std::int64_t next = 0;
  for (const Operand* part : cat.parts) {
    bool follows = part->tensor == first.tensor && step >= 0;
    for (std::size_t d = 0; d < all.shape.size(); ++d)
      if (part->shape[d] != 1 && part->strides[d] != all.strides[d]) follows = false;
    std::int64_t offset = 0;
    if (__builtin_mul_overflow(next, step, &offset) ||
        __builtin_add_overflow(first.offset, offset, &offset) || offset != part->offset)
      follows = false;
    if (!follows)
      rewriting.refuse(cat.op, "does not concatenate neighbouring slices of one tensor");
    next += part->shape[cat.dim];
  }
  rewriting.reread_all(*cat.result, all);
  rewriting.drop(cat.op);
}

}  // namespace

constinit const Rule kCatOfSlices{.name = "cat_of_slices",
                                  .exact = false,
                                  .anchors = kCatKinds,
                                  .matches = cats_of_one_tensor,
                                  .make = cat_of_slices};

}  // namespace lowtide

// Operands by their names in the schema.
#include "lowtide/transforms/rules/products.h"

#include <algorithm>
#include <utility>

namespace lowtide {

bool is_product(const Op& op) {
  return std::ranges::find(kProductKinds, op.kind) != kProductKinds.end();
}

Product product_of(const Rewriting& rewriting, OpId id) {
  const Op& op = rewriting.graph().op(id);
  if (!is_product(op)) rewriting.refuse(id, "is no mm or addmm, but of kind \"" + op.kind + "\"");
  const bool adds = op.kind == "aten.addmm";
  Product found{.op = id,
                .left = &rewriting.operand(id, adds ? "mat1" : "self"),
                .right = &rewriting.operand(id, "mat2"),
                .added = adds ? &rewriting.operand(id, "self") : nullptr,
                .result = &rewriting.only_result(id)};
  const auto& left = found.left->shape;
  const auto& right = found.right->shape;
  if (op.operands.size() != (adds ? 3u : 2u) || left.size() != 2 || right.size() != 2 ||
      left[1] != right[0] || found.result->shape != std::vector{left[0], right[1]})
    rewriting.refuse(id, "does not have the shapes of a product of two matrices");
  for (const Operand* one : {found.left, found.right, found.added})
    if (one && one->dtype != found.result->dtype)
      rewriting.refuse(id, "reads other number types than it makes");
  if (found.added && !(found.added->shape == std::vector{right[1]} ||
                       found.added->shape == std::vector<std::int64_t>{1, right[1]} ||
                       found.added->shape == found.result->shape))
    rewriting.refuse(id, "adds a tensor that is neither a row nor as large as the product");
  return found;
}

Operand columns_of(const Operand& matrix, std::int64_t first, std::int64_t count) {
  Operand found = matrix;
  found.shape.back() = count;
  found.offset += first * matrix.strides.back();
  return found;
}

Op product_like(const Graph& graph, OpId like, std::string name, const Operand& right,
                const Operand* added, const Operand& result) {
  Op made = graph.op(like);
  made.name = std::move(name);
  made.attributes.clear();
  for (Operand& operand : made.operands) {
    const Operand* now = operand.argument == "mat2" ? &right : nullptr;
    if (added && operand.argument == "self") now = added;
    if (!now) continue;
    Operand seen = *now;
    seen.argument = operand.argument;
    seen.index = operand.index;
    operand = std::move(seen);
  }
  made.results = {result};
  return made;
}

}  // namespace lowtide

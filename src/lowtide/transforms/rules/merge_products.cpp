// merge_products: merge several products with one left matrix into one product.
//
// Pattern: mm or addmm, two or more, of the same left matrix (queries, keys and values; gate and
// up): x A, x B, ...; none of them an output of the graph.
// Replacement: one cat of the right matrices (and of the addends), one product, and readers that
// read their columns of it. Loses: the right matrices are held twice meanwhile; the whole product
// is held until the last of its columns is read; large products are as fast separately. Bits: may
// change. Each element is the same sum, but kernels for wider products may sum in another order.
#include <algorithm>

#include "lowtide/transforms/rules/products.h"
#include "lowtide/transforms/rules/table.h"

namespace lowtide {

namespace {

const Operand* left_of(const Op& op) {
  const std::string_view argument = op.kind == "aten.addmm" ? "mat1" : "self";
  const auto found = std::ranges::find(op.operands, argument, &Operand::argument);
  return found == op.operands.end() ? nullptr : &*found;
}

std::vector<std::vector<OpId>> products_of_one_matrix(const Graph& graph, OpId anchor) {
  const Op& first = graph.op(anchor);
  const Operand* left = left_of(first);
  if (!left) return {};
  std::vector<OpId> alike;
  for (const OpId id : graph.consumers(left->tensor)) {
    const Op& op = graph.op(id);
    const Operand* other = is_product(op) ? left_of(op) : nullptr;
    if (!other || op.kind != first.kind || other->tensor != left->tensor ||
        !other->laid_out_as(*left) || op.arguments != first.arguments || op.phase != first.phase ||
        std::ranges::any_of(graph.outputs(id), [&](TensorId t) { return graph.is_output(t); }))
      continue;
    if (id < anchor) return {};  // that anchor returns this match
    alike.push_back(id);
  }
  if (alike.size() < 2) return {};
  return {alike};
}

// Concatenates the right matrices along their columns. If they are transposed, the cat is along the
// rows of their storage, and its result is transposed too.
Operand side_by_side(Rewriting& rewriting, const std::vector<Product>& products,
                     const std::string& name) {
  const bool transposed = products.front().right->strides[0] == 1;
  std::vector<Operand> parts;
  for (const Product& product : products) {
    Operand& part = parts.emplace_back(*product.right);
    if (!transposed) continue;
    std::swap(part.shape[0], part.shape[1]);
    std::swap(part.strides[0], part.strides[1]);
  }
  Operand all = rewriting.make_cat(name, parts, transposed ? 0 : 1, products.front().op);
  if (transposed) {
    std::swap(all.shape[0], all.shape[1]);
    std::swap(all.strides[0], all.strides[1]);
  }
  return all;
}

void merge_products(Rewriting& rewriting) {
  const Graph& graph = rewriting.graph();
  std::vector<Product> products;
  std::string name;
  for (const OpId op : rewriting.ops()) {
    products.push_back(product_of(rewriting, op));
    name += (name.empty() ? "" : "+") + graph.op(op).name;
    const Product& one = products.back();
    const Product& first = products.front();
    if (graph.op(op).kind != graph.op(first.op).kind ||
        graph.op(op).arguments != graph.op(first.op).arguments)
      rewriting.refuse(op, "is not of the kind of " + rewriting.label(first.op) +
                               ", or has other literal arguments");
    if (one.left->tensor != first.left->tensor || !one.left->laid_out_as(*first.left))
      rewriting.refuse(op, "reads another left matrix than " + rewriting.label(first.op));
    if (one.added && one.added->shape.size() != 1) rewriting.refuse(op, "adds more than one row");
  }
  if (products.size() < 2) rewriting.refuse(products.front().op, "is alone in \"ops\"");
  const Product& first = products.front();
  const Operand right = side_by_side(rewriting, products, name + ".mat2");
  std::optional<Operand> added;
  if (first.added) {
    std::vector<Operand> rows;
    for (const Product& product : products) rows.push_back(*product.added);
    added = rewriting.make_cat(name + ".added", rows, 0, first.op);
  }
  const Operand all = rewriting.make_tensor(name, {first.rows(), right.shape[1]}, *first.result);
  rewriting.make_op(product_like(graph, first.op, name, right, added ? &*added : nullptr, all),
                    first.op);
  std::int64_t column = 0;
  for (const Product& product : products) {
    rewriting.reread_all(*product.result, columns_of(all, column, product.columns()));
    column += product.columns();
    rewriting.drop(product.op);
  }
}

}  // namespace

constinit const Rule kMergeProducts{.name = "merge_products",
                                    .exact = false,
                                    .anchors = kProductKinds,
                                    .matches = products_of_one_matrix,
                                    .make = merge_products};

}  // namespace lowtide

// add_into_product: fuse an addition into the product (addmm).
//
// Pattern: add of a product (mm) without other readers and a tensor of the same size: gradients of
// an input that several layers read, a residual behind a layer without a bias. Replacement: addmm
// that reads the tensor, in place if the add could be in place. Loses: no case is known; the
// operands of the product are held during the addition. Bits: may change. The sum is rounded once,
// where product and sum were rounded separately.
#include <algorithm>

#include "lowtide/transforms/rules/products.h"
#include "lowtide/transforms/rules/table.h"

namespace lowtide {

namespace {

constexpr std::array<std::string_view, 1> kAddKinds = {"aten.add"};

// The addend that is a product without other readers (the later one of two); null if there is none.
const Operand* added_product(const Graph& graph, OpId add) {
  const Operand* found = nullptr;
  for (const Operand& operand : graph.op(add).operands) {
    const OpId maker = graph.producer(operand.tensor);
    if (!maker.valid() || graph.op(maker).kind != "aten.mm" ||
        graph.consumers(operand.tensor).size() != 1 || graph.is_output(operand.tensor) ||
        std::ranges::count(graph.op(add).operands, operand.tensor, &Operand::tensor) != 1)
      continue;
    if (!found || graph.position(maker) > graph.position(graph.producer(found->tensor)))
      found = &operand;
  }
  return found;
}

std::vector<std::vector<OpId>> sums_with_products(const Graph& graph, OpId anchor) {
  if (!added_product(graph, anchor)) return {};
  return {{anchor}};
}

bool is_one(const Op& op, std::string_view argument) {
  const auto found = std::ranges::find(op.arguments, argument, &Argument::name);
  if (found == op.arguments.end()) return true;  // its default
  if (const auto* number = std::get_if<std::int64_t>(&found->value.value)) return *number == 1;
  if (const auto* number = std::get_if<double>(&found->value.value)) return *number == 1;
  return false;
}

void add_into_product(Rewriting& rewriting) {
  const Graph& graph = rewriting.graph();
  const OpId add = rewriting.only_op();
  const Op& op = graph.op(add);
  if (op.operands.size() != 2 || !is_one(op, "alpha"))
    rewriting.refuse(add, "is no sum of two tensors");
  const Operand* value = added_product(graph, add);
  if (!value) rewriting.refuse(add, "adds no mm without other readers");
  const Product product = product_of(rewriting, graph.producer(value->tensor));
  const Operand& to = *std::ranges::find_if(
      op.operands, [&](const Operand& one) { return one.tensor != value->tensor; });
  const Operand& result = rewriting.only_result(add);
  if (to.shape != result.shape || value->shape != result.shape || to.dtype != result.dtype ||
      value->dtype != result.dtype || !is_row_major(*value) ||
      graph.bytes(result.tensor) != graph.bytes(value->tensor))
    rewriting.refuse(add, "does not add all of the product to as much, row by row");
  // The other addend as a matrix: the view of it that corresponds to the product.
  Operand matrix = *product.result;
  const auto begin = relaid(matrix, result, to);
  if (!begin) rewriting.refuse(add, "adds a tensor that is no matrix of the product's shape");
  matrix.tensor = result.tensor;
  Op made = graph.op(product.op);
  made.kind = "aten.addmm";
  made.name = op.name;
  made.attributes.clear();
  made.operands = {*begin, *product.left, *product.right};
  for (std::size_t i = 0; i < 3; ++i) {
    constexpr std::string_view kArguments[] = {"self", "mat1", "mat2"};
    made.operands[i].argument = kArguments[i];
  }
  made.results = {matrix};
  made.arguments = {{"beta", {std::int64_t{1}}}, {"alpha", {std::int64_t{1}}}};
  rewriting.make_op(std::move(made), product.op);
  for (const InPlacePair& pair : graph.in_place(add))
    if (pair.input == to.tensor && pair.input != product.left->tensor &&
        pair.input != product.right->tensor)
      rewriting.latest().in_place.push_back(pair);
  rewriting.drop(product.op);
  rewriting.drop(add);
}

}  // namespace

constinit const Rule kAddIntoProduct{.name = "add_into_product",
                                     .exact = false,
                                     .anchors = kAddKinds,
                                     .matches = sums_with_products,
                                     .make = add_into_product,
                                     .looks_back = true};

}  // namespace lowtide

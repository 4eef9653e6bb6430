// split_product: split a product whose columns are read separately.
//
// Pattern: mm or addmm whose result is read only by views, in two or more ranges of columns that
// have none in common (queries, keys and values that one layer makes; gate and up).
// Replacement: a product for each range, which reads these columns of the right matrix and of the
// addend in place. Columns without readers are not computed.
// Loses: the left matrix is read once for each product and held until the last; narrow products are
// slower.
// Bits: may change. Each element is the same sum, but kernels for narrower products may sum in
// another order.
#include <algorithm>

#include "lowtide/transforms/rules/products.h"
#include "lowtide/transforms/rules/table.h"

namespace lowtide {

namespace {

struct Columns {
  std::int64_t first, end;
};

// The columns that a view reads of a row-major matrix with so many columns: all of them if a
// dimension of the view steps through rows and columns.
Columns columns_seen(const Operand& seen, std::int64_t columns) {
  const std::int64_t first = seen.offset % columns;
  std::int64_t last = first;
  for (std::size_t d = 0; d < seen.shape.size(); ++d) {
    if (seen.shape[d] <= 1 || seen.strides[d] % columns == 0) continue;
    std::int64_t span = 0;
    if (__builtin_mul_overflow(seen.shape[d] - 1, seen.strides[d], &span) ||
        __builtin_add_overflow(last, span, &last) || last < first || last >= columns)
      return {0, columns};
  }
  return {first, last + 1};
}

// Joins ranges that overlap.
std::vector<Columns> apart(std::vector<Columns> all) {
  std::ranges::sort(all, {}, &Columns::first);
  std::vector<Columns> found;
  for (const Columns& one : all) {
    if (!found.empty() && one.first < found.back().end) {
      found.back().end = std::max(found.back().end, one.end);
    } else {
      found.push_back(one);
    }
  }
  return found;
}

std::vector<std::vector<OpId>> products_read_apart(const Graph& graph, OpId anchor) {
  if (graph.op(anchor).results.size() != 1) return {};
  const Operand& result = graph.op(anchor).results.front();
  if (graph.is_output(result.tensor) || result.shape.size() != 2 || result.shape[1] < 2) return {};
  std::vector<Columns> all;
  for (const OpId reader : graph.consumers(result.tensor))
    for (const Operand& operand : graph.op(reader).operands)
      if (operand.tensor == result.tensor) all.push_back(columns_seen(operand, result.shape[1]));
  if (apart(std::move(all)).size() < 2) return {};
  return {{anchor}};
}

void split_product(Rewriting& rewriting) {
  const Graph& graph = rewriting.graph();
  const Product product = product_of(rewriting, rewriting.only_op());
  const std::vector<Reading> readings = rewriting.readings(product.result->tensor);
  const auto seen_by = [&](const Reading& reading) -> const Operand& {
    return graph.op(reading.op).operands[reading.operand];
  };
  std::vector<Columns> all;
  for (const Reading& reading : readings)
    all.push_back(columns_seen(seen_by(reading), product.columns()));
  const std::vector<Columns> pieces = apart(std::move(all));
  if (pieces.size() < 2)
    rewriting.refuse(product.op, "has no two ranges of columns that are read separately");
  const std::string& name = graph.op(product.op).name;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto [first, end] = pieces[i];
    const Operand right = columns_of(*product.right, first, end - first);
    std::optional<Operand> added;
    if (product.added) added = columns_of(*product.added, first, end - first);
    const std::string of = name.empty() ? name : name + "." + std::to_string(i);
    const Operand piece = rewriting.make_tensor(of, {product.rows(), end - first}, *product.result);
    rewriting.make_op(product_like(graph, product.op, of, right, added ? &*added : nullptr, piece),
                      product.op);
    for (const Reading& reading : readings) {
      const Operand& seen = seen_by(reading);
      if (columns_seen(seen, product.columns()).first < first ||
          columns_seen(seen, product.columns()).end > end)
        continue;
      const auto now = relaid(seen, columns_of(*product.result, first, end - first), piece);
      if (!now)
        rewriting.refuse(reading.op,
                         "reads " + rewriting.label(product.result->tensor) +
                             " in a way that strides cannot express after the substitution");
      rewriting.reread(reading, *now);
    }
  }
  rewriting.drop(product.op);
}

}  // namespace

constinit const Rule kSplitProduct{.name = "split_product",
                                   .exact = false,
                                   .anchors = kProductKinds,
                                   .matches = products_read_apart,
                                   .make = split_product};

}  // namespace lowtide

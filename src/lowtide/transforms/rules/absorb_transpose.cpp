// absorb_transpose: a product reads a transposed matrix without a copy.
//
// Pattern: clone or contiguous of a transposed view, read by products alone (mm, addmm, bmm,
// baddbmm) as matrices in which one dimension has stride 1.
// Replacement: the products read the view; kernels accept both layouts.
// Loses: the copied tensor is held as long as the copy was; some kernels are slower for rows that
// are not contiguous. Bits: may change. The kernel for a transposed matrix may sum in another
// order.
#include <algorithm>

#include "lowtide/transforms/rules/rewriting.h"
#include "lowtide/transforms/rules/table.h"

namespace lowtide {

namespace {

constexpr std::array<std::string_view, 2> kCopies = {"aten.clone", "aten.contiguous"};

std::vector<std::vector<OpId>> copies_that_are_multiplied(const Graph& graph, OpId anchor) {
  if (graph.outputs(anchor).size() != 1) return {};
  const auto readers = graph.consumers(graph.outputs(anchor).front());
  if (readers.empty() || !std::ranges::all_of(readers, [&](OpId reader) {
        return multiplies_matrices(graph.op(reader));
      }))
    return {};
  return {{anchor}};
}

// Whether rows or columns are contiguous and do not overlap.
bool is_plain_matrix(const Operand& operand) {
  const std::size_t rank = operand.shape.size();
  if (rank < 2) return false;
  const auto lies = [&](std::size_t inner, std::size_t outer) {
    return (operand.strides[inner] == 1 || operand.shape[inner] == 1) &&
           (operand.shape[outer] == 1 || operand.strides[outer] >= operand.shape[inner]);
  };
  return lies(rank - 1, rank - 2) || lies(rank - 2, rank - 1);
}

void absorb_transpose(Rewriting& rewriting) {
  const Graph& graph = rewriting.graph();
  const OpId copy = rewriting.only_op();
  const Operand& source = rewriting.operand(copy, "self");
  const Operand& result = rewriting.only_result(copy);
  for (const Reading& reading : rewriting.readings(result.tensor)) {
    if (!multiplies_matrices(graph.op(reading.op)))
      rewriting.refuse(
          reading.op, "reads " + rewriting.label(result.tensor) + " and is no product of matrices");
    const auto now = relaid(graph.op(reading.op).operands[reading.operand], result, source);
    if (!now || !is_plain_matrix(*now))
      rewriting.refuse(reading.op, "would read " + rewriting.label(source.tensor) +
                                       " as no matrix whose rows or columns lie side by side");
    rewriting.reread(reading, *now);
  }
  rewriting.drop(copy);
}

}  // namespace

constinit const Rule kAbsorbTranspose{.name = "absorb_transpose",
                                      .exact = false,
                                      .anchors = kCopies,
                                      .matches = copies_that_are_multiplied,
                                      .make = absorb_transpose};

}  // namespace lowtide

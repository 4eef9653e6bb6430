// slice_of_cat: a reader of a slice within one operand of a cat reads that operand.
//
// Pattern: a cat with readers of a single operand of it.
// Replacement: these read the operand. The cat is removed if it has no other reader.
// Loses: the operand is held for longer. If the cat stays, both are held.
// Bits: may change. The values are the same, but with other strides kernels may sum in another
// order.
#include "lowtide/transforms/rules/cats.h"
#include "lowtide/transforms/rules/table.h"

namespace lowtide {

namespace {

std::vector<std::vector<OpId>> cats_with_readers(const Graph& graph, OpId anchor) {
  if (graph.outputs(anchor).size() != 1 || graph.consumers(graph.outputs(anchor).front()).empty())
    return {};
  return {{anchor}};
}

void slice_of_cat(Rewriting& rewriting) {
  const Graph& graph = rewriting.graph();
  const Cat cat = cat_of(rewriting, rewriting.only_op());
  const TensorId made = cat.result->tensor;
  bool any = false, all = !graph.is_output(made);
  for (const OpId reader : graph.consumers(made)) {
    const auto& operands = graph.op(reader).operands;
    bool told = false, changes = !graph.mutates(reader).empty();
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].tensor != made) continue;
      told = true;
      std::optional<Operand> now;
      for (std::size_t part = 0; part < cat.parts.size() && !now && !changes; ++part)
        now = relaid(operands[i], cat.places[part], *cat.parts[part]);
      if (!now) {
        all = false;
        continue;
      }
      any = true;
      rewriting.reread({reader, i}, *now);
    }
    if (!told) all = false;
  }
  if (!any) rewriting.refuse(cat.op, "has no reader of a single operand");
  if (all) rewriting.drop(cat.op);
}

}  // namespace

constinit const Rule kSliceOfCat{.name = "slice_of_cat",
                                 .exact = false,
                                 .anchors = kCatKinds,
                                 .matches = cats_with_readers,
                                 .make = slice_of_cat};

}  // namespace lowtide

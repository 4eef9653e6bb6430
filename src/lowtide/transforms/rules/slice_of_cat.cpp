// slice_of_cat: who reads a slice of a cat that lies in one part reads that part.
//
// Pattern: cat, some readers of which see a part of it alone.
// Replacement: these read the part; where no reader is left the cat goes.
// Where it loses: the part is held for longer. Where the cat stays, both are held.
// Bits: may change. Readers see the same values, but where these lie in other strides, kernels may
// add them up in another order.
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
  if (!any) rewriting.refuse(cat.op, "has no reader that sees one of its parts alone");
  if (all) rewriting.drop(cat.op);
}

}  // namespace

constinit const Rule kSliceOfCat{.name = "slice_of_cat",
                                 .exact = false,
                                 .anchors = kCatKinds,
                                 .matches = cats_with_readers,
                                 .make = slice_of_cat};

}  // namespace lowtide

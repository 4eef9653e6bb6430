// lowtide/graph/blocks.h
#include "lowtide/graph/blocks.h"

#include "lowtide/base/error.h"

#include "objects.h"

namespace lowtide::python {

namespace {

std::string hash_of(const GraphObject& graph, const std::vector<std::int64_t>& indices) {
  std::vector<OpId> ops;
  std::vector<bool> seen(graph->op_count());
  for (const std::int64_t index : indices) {
    const std::string place = "ops: " + std::to_string(index);
    if (index < 0 || static_cast<std::size_t>(index) >= graph->op_count())
      throw InputError(place, "is no op; the graph has " + std::to_string(graph->op_count()));
    const OpId op(static_cast<std::size_t>(index));
    if (seen[op.index()]) throw InputError(place, "is listed twice");
    seen[op.index()] = true;
    ops.push_back(op);
  }
  const nb::gil_scoped_release released;
  return to_string(block_hash(*graph, ops));
}

}  // namespace

void bind_blocks(nb::class_<GraphObject>& graph) {
  graph.def("block_hash", &hash_of, nb::arg("ops"),
            nb::sig("def block_hash(self, ops: collections.abc.Sequence[int]) -> str"),
            "A hash of these ops as a block, 32 hexadecimal digits. Blocks that differ only in "
            "names, times and numbering have equal hashes.\n\n`ops`: indices, in any order, each "
            "once. Raises Error otherwise.");
}

}  // namespace lowtide::python

// lowtide/graph/repeats.h
#include "lowtide/graph/repeats.h"

#include "lowtide/base/error.h"

#include "objects.h"

namespace lowtide::python {

namespace {

std::vector<RepeatedBlock> find(const GraphObject& graph, std::int64_t most, double least_share) {
  if (most < 0) throw InputError("most", "is negative");
  if (!(least_share >= 0 && least_share <= 1))
    throw InputError("least_share", "is no share from 0 to 1");
  const nb::gil_scoped_release released;
  return repeated_blocks(*graph,
                         {.most = static_cast<std::size_t>(most), .least_share = least_share});
}

nb::list places(const RepeatedBlock& block) {
  nb::list places;
  for (const std::vector<OpId>& ops : block.places) {
    nb::list place;
    for (const OpId op : ops) place.append(op.index());
    places.append(place);
  }
  return places;
}

}  // namespace

void bind_repeats(nb::module_& module, nb::class_<GraphObject>& graph) {
  nb::class_<RepeatedBlock>(module, "RepeatedBlock", "Equal blocks of a graph.")
      .def_prop_ro(
          "hash", [](const RepeatedBlock& block) { return to_string(block.hash); },
          "Their block_hash.")
      .def_prop_ro("places", &places, nb::sig("def places(self) -> list[list[int]]"),
                   "The ops of each block as indices, in corresponding order.")
      .def_prop_ro(
          "time", [](const RepeatedBlock& block) { return block.time.count(); },
          "Ticks of computing all of them once.")
      .def("__repr__", [](const RepeatedBlock& block) {
        return "<lowtide.RepeatedBlock: " + std::to_string(block.ops()) + " ops, " +
               std::to_string(block.places.size()) + " times>";
      });
  const RepeatSettings settings;
  graph.def("repeated_blocks", &find, nb::arg("most") = settings.most,
            nb::arg("least_share") = settings.least_share,
            nb::sig("def repeated_blocks(self, most: int = 16, least_share: float = 0.005) -> "
                    "list[RepeatedBlock]"),
            "Repeated blocks, such as layers: disjoint, at most `most` kinds, the kind that covers "
            "most ops first; each kind covers at least `least_share` of all ops.");
}

}  // namespace lowtide::python

// lowtide/rewrite/survey.h
#include <optional>
#include <utility>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/transforms/apply.h"
#include "lowtide/rewrite/survey.h"

#include "convert.h"
#include "objects.h"

namespace lowtide::python {

namespace {

nb::dict regions(const GraphObject& graph, nb::handle device, bool hoist) {
  const std::optional<Device> known = device_from(device);
  std::optional<rewrite::Hoisted> base;
  rewrite::Survey survey;
  {
    const nb::gil_scoped_release released;
    base = hoist ? rewrite::hoisted(*graph, *known)
                 : rewrite::Hoisted{{}, apply_transforms(*graph, {})};
    survey = rewrite::survey(base->now.graph, *known);
  }
  const Transformed& now = base->now;
  nb::list found;
  for (const rewrite::Surveyed& one : survey.found) {
    nb::list axes, ops;
    for (const auto& seed : one.region.axes)
      axes.append(nb::make_tuple(now.tensor_index[seed.tensor].index(), seed.dim));
    for (const OpId op : one.region.ops) ops.append(now.op_index[op].index());
    nb::dict entry;
    entry["what"] = one.region.what;
    entry["parts"] = one.parts;
    entry["own_peak"] = one.peak.count();
    entry["saved"] = (survey.peak - one.peak).count();
    entry["overhead"] = overhead_percent(one.time, graph->total_time()) / 100;
    entry["axes"] = axes;
    entry["ops"] = ops;
    found.append(entry);
  }
  nb::dict result;
  result["hoisted"] = !base->transforms.empty();
  result["own_peak"] = survey.peak.count();
  result["regions"] = found;
  return result;
}

}  // namespace

void bind_regions(nb::class_<GraphObject>& graph) {
  graph.def("regions", &regions, nb::kw_only(), nb::arg("device") = "a100", nb::arg("hoist") = true,
            nb::sig("def regions(self, *, device: Device | str | os.PathLike[str] = 'a100', hoist: "
                    "bool = True) -> dict[str, typing.Any]"),
            "Regions that could be split, the smallest peak first, as `lowtide regions` lists "
            "them: \"hoisted\" (whether the backward is hoisted first), \"own_peak\" of the graph "
            "then, and \"regions\", a list of dicts: \"what\", \"parts\", \"own_peak\" and "
            "\"overhead\" of the split alone, both estimated, \"saved\" bytes, \"axes\" as pairs "
            "of tensor and dimension, \"ops\". Parts are priced on `device`.");
}

}  // namespace lowtide::python

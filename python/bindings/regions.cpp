// lowtide/rewrite/survey.h
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/transforms/apply.h"
#include "lowtide/rewrite/survey.h"

#include "convert.h"
#include "objects.h"

namespace lowtide::python {

namespace {

nb::dict regions(const GraphObject& graph, nb::handle device, bool hoist, nb::handle path,
                 std::optional<std::size_t> pick) {
  const std::optional<Device> known = device_from(device);
  const auto costs = costs_from(path);
  std::optional<rewrite::Hoisted> base;
  rewrite::Survey survey;
  {
    const nb::gil_scoped_release released;
    base = hoist ? rewrite::hoisted(*graph, *known, costs.get())
                 : rewrite::Hoisted{{}, apply_transforms(*graph, {})};
    survey = rewrite::survey(base->now.graph, *known, costs.get());
  }
  if (pick && *pick >= survey.found.size())
    throw nb::index_error(
        fmt::format("pick={}: there are {} regions", *pick, survey.found.size()).c_str());
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
  if (pick) {
    std::vector<Transform> transforms = base->transforms;
    transforms.emplace_back(rewrite::split_of(now, survey.found[*pick], *known, costs.get()));
    result["transforms"] = transforms_list(transforms);
  }
  return result;
}

}  // namespace

void bind_regions(nb::class_<GraphObject>& graph) {
  graph.def(
      "regions", &regions, nb::kw_only(), nb::arg("device") = "a100", nb::arg("hoist") = true,
      nb::arg("costs") = nb::none(), nb::arg("pick") = nb::none(),
      nb::sig("def regions(self, *, device: Device | str | os.PathLike[str] = 'a100', hoist: "
              "bool = True, costs: str | os.PathLike[str] | None = None, pick: int | None = None) "
              "-> dict[str, typing.Any]"),
      "Regions that could be split, the smallest peak first, as `lowtide regions` lists "
      "them: \"hoisted\" (whether the backward is hoisted first), \"own_peak\" of the graph "
      "then, and \"regions\", a list of dicts: \"what\", \"parts\", \"own_peak\" and "
      "\"overhead\" of the split alone, both estimated, \"saved\" bytes, \"axes\" as pairs "
      "of tensor and dimension, \"ops\". Parts are priced by the "
      "table of measured calls in the file `costs`, else on `device`. With `pick`, the place of a "
      "region in that list, there are \"transforms\" too: those that make it, with prices, as "
      "`plan` takes them. IndexError where there is no such region.");
}

}  // namespace lowtide::python

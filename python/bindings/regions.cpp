// lowtide/rewrite/survey.h, substitutions.h
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "lowtide/plan/outcome.h"
#include "lowtide/rewrite/substitutions.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/transforms/apply.h"
#include "lowtide/transforms/substitution.h"

#include "convert.h"
#include "objects.h"

namespace lowtide::python {

namespace {

nb::dict regions(const GraphObject& graph, nb::handle device, bool hoist, nb::handle path,
                 std::optional<std::size_t> pick) {
  const std::optional<Device> known = device_from(device);
  const auto costs = costs_from(path);
  std::optional<Applied> base;
  rewrite::Survey survey;
  {
    const nb::gil_scoped_release released;
    base = rewrite::hoisted(*graph, *known, costs.get(), hoist);
    survey = rewrite::survey(base->now.graph, *known, costs.get());
  }
  if (pick && *pick >= survey.found.size())
    throw nb::index_error(
        fmt::format("pick={}: there are {} regions", *pick, survey.found.size()).c_str());
  const TransformedGraph& now = base->now;
  nb::list found;
  for (const rewrite::Surveyed& one : survey.found) {
    nb::list axes, ops;
    for (const auto& seed : one.region.axes)
      axes.append(nb::make_tuple(now.tensor_index[seed.tensor].index(), seed.dim));
    for (const OpId op : one.region.ops) ops.append(now.op_index[op].index());
    nb::dict entry;
    entry["what"] = rewrite::describe(now.graph, one.region);
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

nb::list substitutions(const GraphObject& graph, nb::handle device, nb::handle path) {
  const std::optional<Device> known = device_from(device);
  const auto costs = costs_from(path);
  std::vector<rewrite::Proposed> all;
  {
    const nb::gil_scoped_release released;
    const TransformedGraph now = apply_transforms(*graph, {});
    all = rewrite::substitutions(now, PartPricer(now.graph, *known, costs.get()));
  }
  nb::list found;
  for (const rewrite::Proposed& one : all) {
    nb::dict entry;
    entry["rule"] = one.substitute.rule;
    entry["exact"] = one.substitute.exact;
    entry["saved"] = one.saved.count();
    entry["transforms"] = transforms_list(std::vector<Transform>{one.substitute});
    found.append(entry);
  }
  return found;
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
  graph.def(
      "substitutions", &substitutions, nb::kw_only(), nb::arg("device") = "a100",
      nb::arg("costs") = nb::none(),
      nb::sig("def substitutions(self, *, device: Device | str | os.PathLike[str] = 'a100', "
              "costs: str | os.PathLike[str] | None = None) -> list[dict[str, typing.Any]]"),
      "Patterns of ops that a rule can replace: a list of dicts, \"rule\", \"exact\" (no bit "
      "changes), \"saved\" ticks of computing each op once, negative where it costs some, and "
      "\"transforms\", the substitution with its prices, as `plan` takes them. Priced as in "
      "`regions`.");
}

void bind_substitution_rules(nb::module_& module) {
  module.def(
      "substitution_rules",
      [] {
        nb::list list;
        for (const Rule* rule : substitution_rules()) {
          nb::dict entry;
          entry["name"] = std::string(rule->name);
          entry["exact"] = rule->exact;
          nb::list anchors;
          for (const std::string_view kind : rule->anchors) anchors.append(std::string(kind));
          entry["anchors"] = anchors;
          list.append(entry);
        }
        return list;
      },
      nb::sig("def substitution_rules() -> list[dict[str, typing.Any]]"),
      "The table of rules: \"name\", \"exact\" (no bit changes), \"anchors\", the kinds of ops "
      "from which it is matched.");
}

}  // namespace lowtide::python

// lowtide/layout/place_plan.h
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/hash.h"
#include "lowtide/layout/baselines.h"
#include "lowtide/layout/lifetimes.h"
#include "lowtide/layout/place_plan.h"
#include "lowtide/sim/check_plan.h"

#include "convert.h"
#include "errors.h"
#include "objects.h"
#include "run.h"
#include "search.h"

namespace lowtide::python {

namespace {

constexpr double kSeconds = 2;

struct PlacementObject {
  GraphObject graph;
  std::shared_ptr<const PlanFile> file;  // with the offsets
  Bytes alignment;
  layout::PlanPlacement placed;
  double seconds;
};

// The plan's file, verified, without offsets of its own and as one whose budget is of live bytes.
PlanFile verified(const GraphObject& graph, const PlanObject& plan) {
  PlanFile file = *plan.file;
  file.offsets.clear();
  file.claims.arena.reset();
  file.footprint = Footprint::live;
  const bool bare = file.graph_hash.empty();
  if (bare) {
    file.graph_hash = graph_hash_of(graph);
    file.graph_name = graph->name();
    file.claims.status = Status::feasible;
  }
  const PlanVerdict verdict = check_plan(*graph, file);
  if (verdict.kind == PlanVerdict::Kind::another_graph) throw WrongGraph(verdict.reason);
  if (verdict.kind == PlanVerdict::Kind::broken) throw PlanRefused(verdict.reason, verdict.step);
  if (!verdict.cost) throw PlanRefused("the file has no plan", std::nullopt);
  if (bare) {
    file.claims.duration = verdict.cost->duration;
    file.claims.peak = verdict.cost->peak;
  }
  return file;
}

PlacementObject place(const GraphObject& graph, const PlanObject& plan, std::int64_t alignment,
                      nb::handle capacity, std::optional<double> time,
                      std::optional<std::int64_t> work, std::uint64_t seed) {
  layout::PlaceSettings settings;
  settings.alignment = Bytes(alignment);
  settings.seed = seed;
  if (!capacity.is_none()) settings.capacity = budget_of(capacity, *graph, "capacity");
  PlanFile file = verified(graph, plan);
  const bool was_arena = plan.file->footprint == Footprint::arena;
  if (was_arena && !settings.capacity) settings.capacity = file.budget;
  if (!time && !work) time = kSeconds;
  CancelToken token;
  Limits limits(Search(time, work, seed, 1).limits(token));
  PlacementObject result;
  result.graph = graph;
  result.alignment = settings.alignment;
  run_beside(
      token, [&] { result.placed = layout::place_plan(*graph, file.plan, settings, limits); },
      [](bool) {});
  result.seconds = limits.seconds();
  layout::write_offsets(file, result.placed, settings.alignment);
  const PlanVerdict verdict = check_plan(*graph, file);
  check(verdict.kind == PlanVerdict::Kind::holds, verdict.reason);
  if (was_arena) file.footprint = Footprint::arena;
  result.file = std::make_shared<const PlanFile>(std::move(file));
  return result;
}

nb::dict baselines_of(const PlacementObject& placement) {
  const layout::Lifetimes found = layout::placeable(*placement.graph, placement.file->plan);
  nb::dict heights;
  for (const layout::Baseline baseline : layout::kBaselines) {
    const Bytes height = layout::baseline_height(baseline, found.buffers, placement.alignment);
    const std::string name(layout::to_string(baseline));
    heights[name.c_str()] = checked_add(height, placement.graph->resident()).count();
  }
  return heights;
}

}  // namespace

nb::list offsets_list(const std::vector<PlannedOffset>& offsets) {
  nb::list list;
  for (const PlannedOffset& one : offsets)
    list.append(nb::make_tuple(
        if_any(one.step != PlannedOffset::kStart, std::int64_t{one.step}),
        if_any(one.tensor.valid(),
               one.tensor.valid() ? static_cast<std::int64_t>(one.tensor.index()) : 0),
        one.offset.count()));
  return list;
}

void bind_place(nb::module_& module) {
  nb::class_<PlacementObject>(module, "Placement", "Offsets for the tensors of a plan.")
      .def_prop_ro(
          "plan", [](const PlacementObject& p) { return PlanObject{p.file}; },
          "The plan with its offsets.")
      .def_prop_ro(
          "offsets", [](const PlacementObject& p) { return offsets_list(p.placed.offsets); },
          nb::sig("def offsets(self) -> list[tuple[int | None, int | None, int]]"),
          "(step, tensor, offset) for each time that bytes begin to be needed. The step is None "
          "for what is live at the start, the tensor for a workspace.")
      .def_prop_ro(
          "arena", [](const PlacementObject& p) { return p.placed.arena.count(); },
          "Bytes of the arena, resident bytes included.")
      .def_prop_ro(
          "load", [](const PlacementObject& p) { return p.placed.load.count(); },
          "The most bytes live at once, in sizes rounded up to the alignment.")
      .def_prop_ro(
          "bound", [](const PlacementObject& p) { return p.placed.bound.count(); },
          "No arena of this plan is smaller.")
      .def_prop_ro("baselines", &baselines_of, nb::sig("def baselines(self) -> dict[str, int]"),
                   "Bytes of the arenas that the rules of other planners come to, by the names of "
                   "`lowtide place --baselines`. Computed at each access.")
      .def_prop_ro(
          "status", [](const PlacementObject& p) { return to_string(p.placed.status); },
          "\"optimal\": no arena is smaller. \"feasible\". With a capacity also \"infeasible\": "
          "proven that the plan does not fit, or \"unknown\".")
      .def_prop_ro("stopped_by",
                   [](const PlacementObject& p) { return to_string(p.placed.stopped_by); })
      .def_ro("seconds", &PlacementObject::seconds)
      .def("__repr__", [](const PlacementObject& p) {
        return fmt::format("<lowtide.Placement: {}, arena {}, load {}>", to_string(p.placed.status),
                           p.placed.arena.count(), p.placed.load.count());
      });
  module.def(
      "place", &place, nb::arg("graph"), nb::arg("plan"), nb::kw_only(), nb::arg("alignment") = 512,
      nb::arg("capacity") = nb::none(), nb::arg("time") = nb::none(), nb::arg("work") = nb::none(),
      nb::arg("seed") = 0,
      nb::sig("def place(graph: Graph, plan: Plan, *, alignment: int = 512, capacity: int | str | "
              "None = None, time: float | None = None, work: int | None = None, seed: int = 0) -> "
              "Placement"),
      "Give every tensor of a plan an offset in one arena.\n\n`alignment`: offsets are multiples "
      "of it. `capacity`: the first arena within so many bytes is enough; of a plan with the "
      "footprint \"arena\" it is the budget. `time`: time limit in seconds (2; none with `work`). "
      "`work`: limit on counted work, with the same result on every machine.\n\nRaises PlanError, "
      "WrongGraphError and Error.");
}

}  // namespace lowtide::python

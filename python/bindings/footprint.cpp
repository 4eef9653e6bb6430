// lowtide/layout/footprint.h.
#include "lowtide/layout/footprint.h"

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"

#include "convert.h"
#include "errors.h"
#include "objects.h"
#include "replay.h"

namespace lowtide::python {

namespace {

using layout::DeviceFootprint;

void require_legal(const Graph& graph, const Plan& plan) {
  if (const Timeline timeline = simulate(graph, plan); timeline.violation)
    throw PlanRefused(timeline.violation->reason, timeline.violation->step);
}

// What unplanned steps ask for, with tensors at home on the host on the device.
layout::Trace own_trace(const Graph& graph, int steps) {
  if (!graph.has_tensors_on_host()) return layout::plan_trace(graph, own_plan(graph), steps);
  return own_trace(Graph(graph).with_homes_on_device(), steps);
}

DeviceFootprint run(const GraphObject& graph, const std::optional<PlanObject>& plan,
                    const std::string& allocator, int steps, nb::handle memory) {
  const layout::FootprintTerms terms{layout::parse_allocator_settings(allocator), steps,
                                     memory_of(memory)};
  const nb::gil_scoped_release released;
  if (!plan) return layout::own_footprint(*graph, terms);
  require_legal(*graph, plan->file->plan);
  return layout::footprint(*graph, plan->file->plan, terms);
}

nb::list allocations(const GraphObject& graph, const std::optional<PlanObject>& plan, int steps) {
  if (steps < 1) throw InputError("steps", "must be at least 1");
  layout::Trace trace;
  {
    const nb::gil_scoped_release released;
    if (plan) require_legal(*graph, plan->file->plan);
    trace = plan ? layout::plan_trace(*graph, plan->file->plan, steps) : own_trace(*graph, steps);
  }
  nb::list list;
  for (const layout::TraceEvent& event : trace) {
    if (event.kind == layout::TraceEvent::Kind::allocate)
      list.append(nb::make_tuple("allocate", event.id, event.bytes.count()));
    else if (event.kind == layout::TraceEvent::Kind::free)
      list.append(nb::make_tuple("free", event.id));
    else
      list.append(nb::make_tuple("end_step"));
  }
  return list;
}

template <Bytes layout::Peaks::*member>
auto peak() {
  return [](const DeviceFootprint& found) { return (found.replay.peaks.*member).count(); };
}

}  // namespace

void bind_footprint(nb::module_& module) {
  nb::class_<DeviceFootprint>(
      module, "Footprint",
      "What a plan takes from a device under PyTorch's caching allocator, in "
      "bytes; peaks over all steps.")
      .def_prop_ro(
          "live", [](const DeviceFootprint& found) { return found.live.count(); },
          "The peak of the plan: bytes of tensors and workspaces.")
      .def_prop_ro("requested", peak<&layout::Peaks::requested>(),
                   "Asked for, between allocation and free.")
      .def_prop_ro("allocated", peak<&layout::Peaks::allocated>(),
                   "Of blocks in use, which are rounded up: torch.cuda.max_memory_allocated.")
      .def_prop_ro("active", peak<&layout::Peaks::active>(),
                   "Of those, and of freed ones that wait for another stream.")
      .def_prop_ro("reserved", peak<&layout::Peaks::reserved>(),
                   "Taken from the device: torch.cuda.max_memory_reserved.")
      .def_prop_ro("inactive_split", peak<&layout::Peaks::inactive_split>(),
                   "Free parts of segments that are partly in use.")
      .def_prop_ro(
          "steps", [](const DeviceFootprint& found) { return steps_list(found.replay); },
          nb::sig("def steps(self) -> list[dict[str, int]]"), "The same peaks of each step.")
      .def_prop_ro(
          "counts", [](const DeviceFootprint& found) { return counts_dict(found.replay.counts); },
          nb::sig("def counts(self) -> dict[str, int]"), "How often each rule was at work.")
      .def_prop_ro(
          "out_of_memory",
          [](const DeviceFootprint& found) { return out_of_memory_or_none(found.replay); },
          nb::sig("def out_of_memory(self) -> dict[str, int] | None"),
          "The request that memory did not serve, if it ran out.")
      .def_prop_ro(
          "allocator",
          [](const DeviceFootprint& found) { return layout::to_string(found.terms.settings); },
          "The settings, as PYTORCH_ALLOC_CONF has them.")
      .def_prop_ro(
          "better",
          [](const DeviceFootprint& found) {
            nb::list list;
            for (const layout::OtherSettings& other : found.better)
              list.append(nb::make_tuple(other.settings, other.reserved.count()));
            return list;
          },
          nb::sig("def better(self) -> list[tuple[str, int]]"),
          "Settings that reserve less, and how much they reserve; the least first.")
      .def("__repr__", [](const DeviceFootprint& found) {
        return fmt::format("<lowtide.Footprint: live {}, allocated {}, reserved {}>",
                           found.live.count(), found.replay.peaks.allocated.count(),
                           found.replay.peaks.reserved.count());
      });
  module.def(
      "footprint", &run, nb::arg("graph"), nb::arg("plan") = nb::none(), nb::kw_only(),
      nb::arg("allocator") = "", nb::arg("steps") = layout::kFootprintSteps,
      nb::arg("memory") = nb::none(),
      nb::sig("def footprint(graph: Graph, plan: Plan | None = None, *, allocator: str = '', "
              "steps: int = 6, memory: int | str | None = None) -> Footprint"),
      "What steps of training with the plan, or unplanned, take from a device under "
      "PyTorch's caching allocator.\n\n`allocator` is a string as in PYTORCH_ALLOC_CONF, "
      "`memory` what the device has. Raises PlanError for a plan that breaks a rule; Error "
      "for settings that PyTorch refuses.");
  module.def("plan_allocations", &allocations, nb::arg("graph"), nb::arg("plan") = nb::none(),
             nb::kw_only(), nb::arg("steps") = layout::kFootprintSteps,
             nb::sig("def plan_allocations(graph: Graph, plan: Plan | None = None, *, steps: int = "
                     "6) -> list[tuple[typing.Any, ...]]"),
             "What steps of training with the plan, or unplanned, ask of an allocator: events as "
             "replay_allocations takes them.");
}

}  // namespace lowtide::python

// lowtide/layout/plan_snapshot.h and lowtide/report/trace.h: plans for the viewers of others.
#include "lowtide/io/snapshot_pickle.h"
#include "lowtide/io/text_file.h"
#include "lowtide/layout/plan_snapshot.h"
#include "lowtide/report/trace.h"
#include "lowtide/sim/simulate.h"

#include "convert.h"
#include "objects.h"
#include "verify.h"

namespace lowtide::python {

namespace {

// Of the plan, or of the unplanned step.
PlanFile file_of(const Graph& graph, const PlanObject* plan) {
  PlanFile file;
  if (plan != nullptr)
    file = *plan->file;
  else
    file.plan = own_plan(graph);
  require_holding(graph, file);
  return file;
}

void save_snapshot(const GraphObject& graph, const PlanObject* plan, nb::handle path) {
  const std::string name = path_of(path);
  const nb::gil_scoped_release released;
  const PlanFile file = file_of(*graph, plan);
  io::write_text_file(name, io::write_snapshot(layout::plan_snapshot(*graph, file)));
}

void save_trace(const GraphObject& graph, const PlanObject* plan, nb::handle path) {
  const std::string name = path_of(path);
  const report::TraceFormat format = report::trace_format(name);
  const nb::gil_scoped_release released;
  const PlanFile file = file_of(*graph, plan);
  const report::Report report = report::make_report(*graph, &file.plan, file.budget);
  io::write_text_file(name, report::write_trace(report::trace_of(*graph, report), format));
}

}  // namespace

void bind_pictures(nb::module_& module) {
  module.def("save_snapshot", &save_snapshot, nb::arg("graph"), nb::arg("plan").none(),
             nb::arg("path"),
             nb::sig("def save_snapshot(graph: Graph, plan: Plan | None, path: str | "
                     "os.PathLike[str]) -> None"),
             "Write what `lowtide show --snapshot` writes: a snapshot for PyTorch's memory_viz, "
             "with all bytes at their planned offsets.\n\nWithout a plan, of the unplanned step. "
             "Raises PlanError for a plan that breaks a rule.");
  module.def("save_trace", &save_trace, nb::arg("graph"), nb::arg("plan").none(), nb::arg("path"),
             nb::sig("def save_trace(graph: Graph, plan: Plan | None, path: str | "
                     "os.PathLike[str]) -> None"),
             "Write what `lowtide show --trace` writes: Chrome's format to a path that ends in "
             "`.json` or `.json.gz`, Perfetto's to `.pftrace`.\n\nWithout a plan, of the unplanned "
             "step. Raises PlanError for a plan that breaks a rule.");
}

}  // namespace lowtide::python

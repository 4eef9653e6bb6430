// lowtide/io/report.h
#include "lowtide/report/report.h"

#include "lowtide/report/report_html.h"
#include "lowtide/report/report_text.h"

#include "objects.h"

namespace lowtide::python {

namespace {

report::Report report_of(const GraphObject& graph, const PlanObject* plan) {
  const bool steps = plan != nullptr && !plan->file->plan.steps.empty();
  report::Report report = report::make_report(*graph, steps ? &plan->file->plan : nullptr,
                                              plan != nullptr ? plan->file->budget : std::nullopt);
  if (steps) report.bound = plan->file->claims.bound;
  if (steps && plan->file->found_by) report.parts = plan->file->found_by->parts;
  return report;
}

}  // namespace

void bind_report(nb::module_& module) {
  module.def(
      "report_text",
      [](const GraphObject& graph, const PlanObject* plan, std::size_t width, bool colour,
         bool unicode) {
        return report::text_report(report_of(graph, plan),
                                   {.width = width, .colour = colour, .unicode = unicode});
      },
      nb::arg("graph"), nb::arg("plan") = nb::none(), nb::kw_only(), nb::arg("width") = 80,
      nb::arg("colour") = false, nb::arg("unicode") = true,
      nb::call_guard<nb::gil_scoped_release>(),
      "The output of `lowtide show`: memory over steps, and what takes it. Without a plan, of the "
      "unplanned step.");
  module.def(
      "report_html",
      [](const GraphObject& graph, const PlanObject* plan) {
        return report::html_report(*graph, report_of(graph, plan));
      },
      nb::arg("graph"), nb::arg("plan") = nb::none(), nb::call_guard<nb::gil_scoped_release>(),
      "The page that `lowtide show --html` writes, as text.");
}

}  // namespace lowtide::python

// lowtide/plan/problem.h
#include "lowtide/plan/problem.h"

#include "lowtide/base/error.h"

#include "problem.h"

namespace lowtide::python {

ProblemObject make_problem(const GraphObject& graph, nb::handle budget, const std::string& order,
                           const std::string& objective, nb::handle time_limit, nb::handle device,
                           const std::optional<std::string>& link, nb::handle techniques) {
  ProblemObject problem{.graph = graph, .budget = Bytes::max(), .time_limit = std::nullopt};
  problem.order = order_of(order);
  problem.objective = objective_of(objective);
  problem.time_limit = time_limit_of(time_limit, *graph);
  problem.machine = machine_from(device, link, *graph);
  problem.techniques = techniques_of(techniques, problem.machine.has_value());
  if (!budget.is_none())
    problem.budget = budget_of(budget, *graph);
  else if (problem.objective == Objective::least_time)
    throw InputError("budget",
                     "is missing; write bytes (8GiB, 512MB, 1000000), a share of the "
                     "graph's peak (80%) or of its activations (act:50%)");
  return problem;
}

Techniques techniques_of(nb::handle techniques, bool has_machine) {
  if (techniques.is_none()) return parse_techniques("default", has_machine);
  if (nb::isinstance<nb::str>(techniques))
    return parse_techniques(text_of(techniques), has_machine);
  std::string list;
  for (nb::handle name : techniques) {
    if (!nb::isinstance<nb::str>(name)) throw nb::type_error("techniques are named by str");
    list += (list.empty() ? "" : ",") + std::string(text_of(name));
  }
  return parse_techniques(list, has_machine);
}

nb::object budget_or_none(const ProblemObject& problem) {
  return if_any(problem.budget != Bytes::max(), problem.budget.count());
}

void bind_problem(nb::module_& module) {
  nb::class_<ProblemObject>(
      module, "Problem",
      "What may be asked: least time within a budget (objective \"time\"), or least memory within "
      "a time limit (\"memory\").")
      .def(
          "__init__",
          [](ProblemObject* self, const GraphObject& graph, nb::handle budget,
             const std::string& order, const std::string& objective, nb::handle time_limit,
             nb::handle device, const std::optional<std::string>& link, nb::handle techniques) {
            new (self) ProblemObject(make_problem(graph, budget, order, objective, time_limit,
                                                  device, link, techniques));
          },
          nb::arg("graph"), nb::arg("budget") = nb::none(), nb::arg("order") = "free",
          nb::arg("objective") = "time", nb::arg("time_limit") = nb::none(), nb::kw_only(),
          nb::arg("device") = nb::none(), nb::arg("link") = nb::none(),
          nb::arg("techniques") = nb::none(),
          nb::sig("def __init__(self, graph: Graph, budget: int | str | None = None, order: str = "
                  "\"free\", objective: str = \"time\", time_limit: int | str | None = None, *, "
                  "device: "
                  "Device | str | os.PathLike[str] | None = None, link: str | None = None, "
                  "techniques: str | collections.abc.Iterable[str] | None = None) -> None"),
          "`budget`: bytes, or as the command takes it (\"8GiB\", \"60%\", \"act:50%\"). `order`: "
          "\"free\", or \"given\" to keep the graph's own. `time_limit`: ticks, or the overhead "
          "that the plan may have (\"5%\"). `device`: whose link to the host a plan may use: a "
          "Device, a name or a file. `link`: that link itself, bytes a second and a latency "
          "(\"25GB/s,10us\"). `techniques`: all that a plan may use, of \"recompute\", "
          "\"in_place\", \"offload\", \"default\" and \"all\", in a list or with commas in "
          "between; None is \"default\".\n\nRaises Error.")
      .def_prop_ro("graph", [](const ProblemObject& p) { return p.graph; })
      .def_prop_ro("budget", &budget_or_none, nb::sig("def budget(self) -> int | None"),
                   "In bytes, or None.")
      .def_prop_ro("order", [](const ProblemObject& p) { return to_string(p.order); })
      .def_prop_ro("objective",
                   [](const ProblemObject& p) {
                     return p.objective == Objective::least_memory ? "memory" : "time";
                   })
      .def_prop_ro(
          "time_limit",
          [](const ProblemObject& p) {
            return if_any(p.time_limit.has_value(), p.time_limit ? p.time_limit->count() : 0);
          },
          nb::sig("def time_limit(self) -> int | None"), "In ticks, or None.")
      .def_prop_ro(
          "machine", [](const ProblemObject& p) { return machine_or_none(p.machine); },
          nb::sig("def machine(self) -> dict[str, dict[str, int]] | None"),
          "The links to the host as a plan file has them, in ticks, or None.")
      .def_prop_ro(
          "techniques",
          [](const ProblemObject& p) {
            nb::list names;
            for (const std::string_view name : names_of(p.techniques))
              names.append(nb::str(name.data(), name.size()));
            return names;
          },
          nb::sig("def techniques(self) -> list[str]"), "Names of all that a plan may use.");
}

}  // namespace lowtide::python

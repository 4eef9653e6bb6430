// lowtide/plan/problem.h
#include "lowtide/plan/problem.h"

#include <cstdint>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/live_limits.h"

#include "problem.h"

namespace lowtide::python {

namespace {

std::vector<LiveLimit> limits_from(const nb::dict& given, const Graph& graph) {
  std::vector<LiveLimit> limits;
  for (const auto& [key, most] : given) {
    std::int64_t op = -1;
    if (!PyLong_Check(key.ptr()) || !nb::try_cast(key, op))
      throw nb::type_error("live_limits must be a dict whose keys are the indices of ops");
    const std::string place = fmt::format("live_limits[{}]", op);
    if (op < 0 || static_cast<std::size_t>(op) >= graph.op_count())
      throw InputError(place,
                       fmt::format("there is no such op; the graph has {}", graph.op_count()));
    limits.push_back({OpId(static_cast<std::size_t>(op)), budget_of(most, graph, place.c_str())});
  }
  return limits;
}

nb::dict limits_of(const ProblemObject& problem) {
  nb::dict limits;
  for (const LiveLimit& limit : problem.live_limits)
    limits[nb::cast(limit.op.index())] = limit.most.count();
  return limits;
}

ProblemObject without_limits(const ProblemObject& problem) {
  if (problem.live_limits.empty()) return problem;
  const Question asked = problem.question();
  const driver::LiveLimitReduction reduction(asked.problem, asked.live_limits);
  ProblemObject plain = problem;
  plain.graph = make_graph(Graph(reduction.problem().graph));
  plain.budget = reduction.problem().budget;
  plain.live_limits.clear();
  return plain;
}

}  // namespace

ProblemObject make_problem(const GraphObject& graph, nb::handle budget,
                           const std::string& objective, nb::handle time_limit,
                           const GivenTerms& terms, const std::optional<nb::dict>& live_limits) {
  ProblemObject problem{.graph = graph, .budget = Bytes::max(), .time_limit = std::nullopt};
  problem.terms = terms_of(terms, *graph);
  problem.objective = objective_of(objective);
  problem.time_limit = time_limit_of(time_limit, *graph);
  if (!budget.is_none())
    problem.budget = budget_of(budget, *graph);
  else if (problem.objective == Objective::least_time)
    throw InputError("budget",
                     "is missing; write bytes (8GiB, 512MB, 1000000), a share of the "
                     "graph's peak (80%) or of its activations (act:50%)");
  if (live_limits) problem.live_limits = limits_from(*live_limits, *graph);
  check_live_limits(problem.question().problem, problem.live_limits);
  return problem;
}

nb::object budget_or_none(const ProblemObject& problem) {
  return if_any(problem.budget != Bytes::max(), problem.budget.count());
}

void bind_problem(nb::module_& module) {
  nb::class_<ProblemObject>(module, "Problem",
                            "A planning problem: least time within a budget (objective \"time\"), "
                            "or least memory within a time limit (\"memory\").")
      .def(
          "__init__",
          [](ProblemObject* self, const GraphObject& graph, nb::handle budget,
             const std::string& order, const std::string& objective, nb::handle time_limit,
             nb::handle device, const std::optional<std::string>& link, nb::handle techniques,
             nb::handle derate, nb::handle host_budget, const std::optional<nb::dict>& live_limits,
             nb::handle transforms, nb::handle costs) {
            new (self) ProblemObject(make_problem(
                graph, budget, objective, time_limit,
                {order, device, link, techniques, derate, host_budget, costs, transforms},
                live_limits));
          },
          nb::arg("graph"), nb::arg("budget") = nb::none(), nb::arg("order") = "free",
          nb::arg("objective") = "time", nb::arg("time_limit") = nb::none(), nb::kw_only(),
          nb::arg("device") = nb::none(), nb::arg("link") = nb::none(),
          nb::arg("techniques") = nb::none(), nb::arg("derate") = nb::none(),
          nb::arg("host_budget") = nb::none(), nb::arg("live_limits") = nb::none(),
          nb::arg("transforms") = nb::none(), nb::arg("costs") = nb::none(),
          nb::sig(
              "def __init__(self, graph: Graph, budget: int | str | None = None, order: str = "
              "\"free\", objective: str = \"time\", time_limit: int | str | None = None, *, "
              "device: "
              "Device | str | os.PathLike[str] | None = None, link: str | None = None, "
              "techniques: str | collections.abc.Iterable[str] | None = None, derate: str | float "
              "| None = None, host_budget: int | str | None = None, live_limits: "
              "dict[int, int | str] | None = None, transforms: "
              "collections.abc.Sequence[dict[str, typing.Any]] | None = None, costs: str | "
              "os.PathLike[str] | None = None) -> None"),
          "`budget`: bytes, or as the command takes it (\"8GiB\", \"60%\", \"act:50%\"). `order`: "
          "\"free\", or \"given\" for first computations in the given order. `time_limit`: ticks, "
          "or the largest overhead (\"5%\"). `device`: the device whose link to the host plans may "
          "use: a Device, a name or a file. `link`: the link to the host, bytes a second and a "
          "latency (\"25GB/s,10us\"); overrides the device's. `derate`: share of link bandwidth "
          "reserved for other traffic, \"10%\" or 0.1; None is \"10%\". `host_budget`: the most "
          "bytes that may lie on the "
          "host, "
          "with a link alone. `techniques`: all that a plan may use, of \"recompute\", "
          "\"in_place\", \"offload\", \"split\", \"hoist\", \"substitute\", \"default\" and "
          "\"all\", in a list or with commas in "
          "between; None is \"default\". `live_limits`: by the index of an op, the most bytes that "
          "may be live while it runs, with everything that counts towards the budget: resident "
          "bytes, inputs, its outputs and its workspace; for objective \"time\". `transforms`: "
          "done "
          "to the graph before it is planned, as a plan file has them; to give one is leave to use "
          "its technique. `costs`: what parts of ops take where transforms are looked for, a table "
          "of "
          "measured calls in a file, which counts before the device.\n\nRaises Error.")
      .def_prop_ro("graph", [](const ProblemObject& p) { return p.graph; })
      .def_prop_ro("budget", &budget_or_none, nb::sig("def budget(self) -> int | None"),
                   "In bytes, or None.")
      .def_prop_ro("order", [](const ProblemObject& p) { return to_string(p.terms.order); })
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
          "machine", [](const ProblemObject& p) { return machine_or_none(p.terms.machine); },
          nb::sig("def machine(self) -> dict[str, dict[str, int]] | None"),
          "The links to the host that are planned with, derated, as a plan file has them, in "
          "ticks, "
          "or None.")
      .def_prop_ro(
          "full_link", [](const ProblemObject& p) { return machine_or_none(p.terms.full_link); },
          nb::sig("def full_link(self) -> dict[str, dict[str, int]] | None"),
          "The link before derating, or None.")
      .def_prop_ro(
          "host_budget",
          [](const ProblemObject& p) {
            const auto& most = p.terms.host_budget;
            return if_any(most.has_value(), most ? most->count() : 0);
          },
          nb::sig("def host_budget(self) -> int | None"), "In bytes, or None.")
      .def_prop_ro(
          "techniques", [](const ProblemObject& p) { return names_from(p.terms.techniques); },
          nb::sig("def techniques(self) -> list[str]"), "Names of all that a plan may use.")
      .def_prop_ro(
          "transforms", [](const ProblemObject& p) { return transforms_list(p.terms.transforms); },
          nb::sig("def transforms(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro("live_limits", &limits_of, nb::sig("def live_limits(self) -> dict[int, int]"),
                   "In bytes, by the index of the op.")
      .def("without_limits", &without_limits, nb::sig("def without_limits(self) -> Problem"),
           "An equivalent problem without `live_limits`, on a graph in which a limited op has more "
           "workspace: the budget minus its limit. Both problems have the same plans. Peaks on "
           "that graph are not the plan's own.");
}

}  // namespace lowtide::python

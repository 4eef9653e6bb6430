// lowtide/sim/verify.h, as lowtide/io/check_plan.h judges the files of plans.
#include "lowtide/sim/verify.h"

#include "lowtide/graph/hash.h"
#include "lowtide/layout/reserved.h"
#include "lowtide/sim/check_plan.h"

#include "convert.h"
#include "errors.h"
#include "objects.h"
#include "verify.h"

namespace lowtide::python {

namespace {

Cost judge(nb::handle asked, const PlanObject& plan, nb::handle budget,
           const std::optional<std::string>& order, nb::handle techniques) {
  PlanFile file = *plan.file;
  GraphObject graph;
  std::optional<ProblemObject> problem;
  if (nb::isinstance<ProblemObject>(asked)) {
    if (!budget.is_none() || order || !techniques.is_none())
      throw nb::type_error("a Problem has budget, order and techniques itself");
    problem = nb::cast<ProblemObject>(asked);
    graph = problem->graph;
    file.budget = problem->budget;
    file.order = problem->terms.order;
    file.techniques = problem->terms.techniques;
    file.host_budget = problem->terms.host_budget;
  } else if (nb::isinstance<GraphObject>(asked)) {
    graph = nb::cast<GraphObject>(asked);
    if (!budget.is_none()) file.budget = budget_of(budget, *graph);
    if (order) file.order = order_of(*order);
    if (!techniques.is_none())
      file.techniques = techniques_of(techniques, file.plan.machine.has_value());
  } else {
    throw nb::type_error("verify() takes a Graph or a Problem");
  }
  const nb::gil_scoped_release released;
  const Cost cost = require_holding(*graph, file);
  if (problem) {
    const Verdict whole = verify(problem->question(), file.plan);
    if (!whole.ok) throw PlanRefused(whole.violation->reason, whole.violation->step);
  }
  return cost;
}

}  // namespace

Cost require_holding(const Graph& graph, PlanFile file) {
  if (file.graph_hash.empty()) {
    file.graph_hash = graph_hash(graph);
    file.claims.status = Status::feasible;
  }
  const PlanVerdict verdict = check_plan(graph, file);
  if (verdict.kind == PlanVerdict::Kind::another_graph) throw WrongGraph(verdict.reason);
  if (verdict.kind == PlanVerdict::Kind::holds)
    if (const auto fault = layout::reserved_fault(graph, file))
      throw PlanRefused(*fault, std::nullopt);
  if (verdict.kind == PlanVerdict::Kind::broken) throw PlanRefused(verdict.reason, verdict.step);
  if (!verdict.cost)
    throw PlanRefused("the file has no plan; its status is: " +
                          std::string(to_string(file.claims.status.value_or(Status::unknown))),
                      std::nullopt);
  return *verdict.cost;
}

void bind_verify(nb::module_& module) {
  module.def(
      "verify", &judge, nb::arg("graph"), nb::arg("plan"), nb::arg("budget") = nb::none(),
      nb::arg("order") = nb::none(), nb::arg("techniques") = nb::none(),
      nb::sig(
          "def verify(graph: Graph | Problem, plan: Plan, budget: int | str | None = None, order: "
          "str | None = None, techniques: str | collections.abc.Iterable[str] | None = None) "
          "-> Cost"),
      "Check every rule, the budget, the order and every figure of the plan, and return its "
      "cost.\n\n`budget`, `order` and `techniques` replace the plan's own. With a Problem all its "
      "demands are checked. Raises PlanError; WrongGraphError for a plan for another graph; Error "
      "for a bad budget.");
}

}  // namespace lowtide::python

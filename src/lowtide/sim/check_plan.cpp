// The hash first, because nothing else in the file means anything for another graph.
#include "lowtide/sim/check_plan.h"

#include "lowtide/graph/hash.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

namespace lowtide {

namespace {

std::string number(Ticks ticks) { return std::to_string(ticks.count()); }
std::string number(Bytes bytes) { return std::to_string(bytes.count()); }

// What the claims say that is not so, given what the steps cost.
std::optional<std::string> false_claim(const Claims& claims, const Cost& cost) {
  if (claims.duration && *claims.duration != cost.duration)
    return "the claimed duration is " + number(*claims.duration) + ", found is " +
           number(cost.duration);
  if (claims.peak && *claims.peak != cost.peak)
    return "the claimed peak is " + number(*claims.peak) + ", found is " + number(cost.peak);
  if (claims.bound && *claims.bound > cost.duration)
    return "the claimed bound " + number(*claims.bound) + " is beyond the duration " +
           number(cost.duration);
  if (claims.bound && claims.status == Status::optimal && *claims.bound != cost.duration)
    return "the plan is claimed to be optimal, but its bound " + number(*claims.bound) +
           " is not its duration " + number(cost.duration);
  return std::nullopt;
}

// The same of what is claimed of other links than the plan's own.
std::optional<std::string> false_full_link(const Graph& graph, const PlanFile& file) {
  const auto& claimed = file.claims.duration_full_link;
  if (!claimed) return std::nullopt;
  if (!file.full_link) return "a duration over the full link is claimed, yet no full link is named";
  const Ticks found = duration_over(graph, file.plan, *file.full_link);
  if (*claimed == found) return std::nullopt;
  return "the claimed duration over the full link is " + number(*claimed) + ", found is " +
         number(found);
}

}  // namespace

void claim_full_link(PlanFile& file, const Graph& graph, const std::optional<Machine>& full_link) {
  if (!full_link || !transfers(file.plan)) return;
  file.full_link = full_link;
  file.claims.duration_full_link = duration_over(graph, file.plan, *full_link);
}

PlanVerdict check_plan(const Graph& graph, const PlanFile& file) {
  using Kind = PlanVerdict::Kind;
  if (const std::string hash = graph_hash(graph); hash != file.graph_hash)
    return {
        Kind::another_graph,
        "the plan is for another graph: its hash is " + file.graph_hash + ", this graph's " + hash,
        std::nullopt, std::nullopt};

  const Claims& claims = file.claims;
  const bool says_none = claims.status == Status::infeasible || claims.status == Status::unknown;
  const auto broken = [](std::string reason) {
    return PlanVerdict{Kind::broken, std::move(reason), std::nullopt, std::nullopt};
  };
  if (says_none) {
    const std::string status(to_string(*claims.status));
    if (!file.plan.steps.empty())
      return broken("the status is " + status + ", yet there are steps");
    if (claims.duration || claims.peak)
      return broken("the status is " + status + ", yet a duration or a peak is claimed");
    return {};
  }
  if (file.plan.steps.empty() && graph.op_count() > 0)
    return broken(claims.status ? "the status is " + std::string(to_string(*claims.status)) +
                                      ", yet there are no steps"
                                : "there are no steps, and no status says why");

  const Problem problem{.graph = graph,
                        .budget = file.budget.value_or(Bytes::max()),
                        .order = file.order,
                        .machine = file.plan.machine,
                        .techniques = file.techniques.value_or(Techniques::all()),
                        .host_budget = file.host_budget};
  const Verdict verdict = verify(problem, file.plan);
  if (!verdict.ok) {
    const std::size_t step = verdict.violation->step;
    const std::string place =
        step < file.plan.steps.size() ? "step " + std::to_string(step) + ": " : std::string();
    return {Kind::broken, place + verdict.violation->reason, step, verdict.cost};
  }
  auto reason = false_claim(claims, verdict.cost);
  if (!reason) reason = false_full_link(graph, file);
  if (reason) return {Kind::broken, std::move(*reason), std::nullopt, verdict.cost};
  return {Kind::holds, {}, std::nullopt, verdict.cost};
}

}  // namespace lowtide

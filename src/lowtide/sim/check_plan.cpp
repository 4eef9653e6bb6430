// The hash first, because nothing else in the file means anything for another graph.
#include "lowtide/sim/check_plan.h"

#include "lowtide/graph/hash.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/check_offsets.h"
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
std::optional<std::string> false_full_link(const Graph& graph, const Plan& plan,
                                           const PlanFile& file) {
  const auto& claimed = file.claims.duration_full_link;
  if (!claimed) return std::nullopt;
  if (!file.full_link) return "a duration over the full link is claimed, yet no full link is named";
  const auto found = duration_over(graph, plan, *file.full_link);
  if (!found) return "the duration of the plan over the full link does not fit into 63 bits";
  if (*claimed == *found) return std::nullopt;
  return "the claimed duration over the full link is " + number(*claimed) + ", found is " +
         number(*found);
}

// Of a tensor that the graph does not have, an index beyond all of its own.
std::vector<PlannedOffset> on_transformed(const TransformedGraph& transformed,
                                          const std::vector<PlannedOffset>& offsets) {
  std::vector<PlannedOffset> result = offsets;
  for (PlannedOffset& one : result) {
    if (!one.tensor.valid()) continue;
    const std::size_t index = one.tensor.index();
    const bool known = index < transformed.tensors.size() && transformed.tensors[index].valid();
    one.tensor = known ? transformed.tensors[index] : TensorId(kMaxCount);
  }
  return result;
}

PlanVerdict broken(std::string reason) {
  return {PlanVerdict::Kind::broken, std::move(reason), std::nullopt, std::nullopt};
}

// What the budget limits, if that is not what is live.
std::optional<std::string> false_footprint(const PlanFile& file) {
  if (file.footprint == Footprint::live) return std::nullopt;
  const bool arena = file.footprint == Footprint::arena;
  const std::string name(to_string(file.footprint));
  const std::optional<Bytes>& claimed = arena ? file.claims.arena : file.claims.reserved;
  if (!claimed) return "the footprint is " + name + ", and no \"" + name + "\" is claimed";
  if (file.budget && *claimed > *file.budget)
    return "the claimed \"" + name + "\" is " + number(*claimed) + " bytes, the budget " +
           number(*file.budget);
  return std::nullopt;
}

PlanVerdict check_no_plan(const PlanFile& file) {
  const Claims& claims = file.claims;
  const std::string status(to_string(*claims.status));
  if (!file.plan.steps.empty()) return broken("the status is " + status + ", yet there are steps");
  if (claims.duration || claims.peak)
    return broken("the status is " + status + ", yet a duration or a peak is claimed");
  if (!file.offsets.empty() || claims.arena || claims.reserved)
    return broken("the status is " + status + ", yet there are offsets, or an arena is claimed");
  return {};
}

// The steps and what is claimed of them, on the graph that they are for. The offsets are in the
// indices of that graph.
PlanVerdict check_steps(const Graph& graph, const Plan& plan, const PlanFile& file,
                        const std::vector<PlannedOffset>& offsets) {
  const Claims& claims = file.claims;
  if (plan.steps.empty() && graph.op_count() > 0)
    return broken(claims.status ? "the status is " + std::string(to_string(*claims.status)) +
                                      ", yet there are no steps"
                                : "there are no steps, and no status says why");

  const Problem problem{.graph = graph,
                        .budget = file.budget.value_or(Bytes::max()),
                        .order = file.order,
                        .machine = plan.machine,
                        .techniques = file.techniques.value_or(Techniques::all()),
                        .host_budget = file.host_budget};
  const Verdict verdict = verify(problem, plan);
  if (!verdict.ok) {
    const std::size_t step = verdict.violation->step;
    const std::string place =
        step < plan.steps.size() ? "step " + std::to_string(step) + ": " : std::string();
    return {PlanVerdict::Kind::broken, place + verdict.violation->reason, step, verdict.cost};
  }
  auto reason = false_claim(claims, verdict.cost);
  if (!reason) reason = false_full_link(graph, plan, file);
  if (!reason) reason = false_footprint(file);
  if (!reason && (!offsets.empty() || file.footprint == Footprint::arena))
    if (const auto fault = offset_fault(graph, plan, file, offsets)) {
      const std::string place = fault->step ? "step " + std::to_string(*fault->step) + ": " : "";
      return {PlanVerdict::Kind::broken, place + fault->reason, fault->step, verdict.cost};
    }
  if (reason) return {PlanVerdict::Kind::broken, std::move(*reason), std::nullopt, verdict.cost};
  return {PlanVerdict::Kind::holds, {}, std::nullopt, verdict.cost};
}

PlanVerdict check_transformed(const Graph& graph, const PlanFile& file) {
  if (file.techniques)
    for (const Transform& transform : file.plan.transforms)
      if (!has_technique(*file.techniques, kind_of(transform)))
        return broken("the technique \"" + std::string(kind_of(transform)) +
                      "\" is not among those allowed");
  try {
    const PlanOnGraph on(graph, file.plan);
    PlanVerdict verdict =
        check_steps(on.graph(), on.plan(), file, on_transformed(*on.transformed(), file.offsets));
    if (verdict.step)
      verdict.reason += " (indices are those of the graph that the transforms make)";
    return verdict;
  } catch (const TransformRefused& error) {
    return broken(error.what());
  }
}

}  // namespace

void claim_full_link(PlanFile& file, const Graph& graph, const std::optional<Machine>& full_link) {
  if (!full_link || !transfers(file.plan)) return;
  file.full_link = full_link;
  file.claims.duration_full_link = duration_over(graph, file.plan, *full_link);
}

PlanVerdict check_plan(const Graph& graph, const PlanFile& file) {
  const auto another = [](const std::string& what, const std::string& theirs,
                          const std::string& ours) {
    return PlanVerdict{
        PlanVerdict::Kind::another_graph,
        "the plan is for another graph: its " + what + " is " + theirs + ", this graph's " + ours,
        std::nullopt, std::nullopt};
  };
  const bool transformed = !file.plan.transforms.empty();
  if (const std::string hash = graph_hash(graph); hash != file.graph_hash)
    return another("hash", file.graph_hash, hash);
  if (const std::string hash = transformed ? transform_hash(graph) : std::string();
      transformed && hash != file.transform_hash)
    return another("transform_hash", file.transform_hash, hash);
  const bool says_none =
      file.claims.status == Status::infeasible || file.claims.status == Status::unknown;
  if (says_none) return check_no_plan(file);
  return transformed ? check_transformed(graph, file)
                     : check_steps(graph, file.plan, file, file.offsets);
}

AppliedPlan apply_plan(const Graph& graph, const PlanFile& file) {
  TransformedGraph made = apply_transforms(graph, file.plan.transforms);
  PlanFile ordinary = file;
  ordinary.plan = on_transformed(made, file.plan);
  ordinary.offsets = on_transformed(made, file.offsets);
  ordinary.graph_hash = graph_hash(made.graph);
  ordinary.transform_hash.clear();
  ordinary.claims.bound_scope.reset();
  return {std::move(made.graph), std::move(ordinary)};
}

}  // namespace lowtide

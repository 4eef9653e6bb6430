#include "lowtide/cli/plan_output.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/base/error.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/report/graph_text.h"
#include "lowtide/report/lanes.h"
#include "lowtide/report/parts_text.h"
#include "lowtide/report/transforms_text.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::cli {

void require_writable(const std::string& path) {
  if (!path.empty()) io::require_writable_file(path);
}

void write_outcome(const std::string& path, const Question& question,
                   const std::optional<Machine>& full_link, const Outcome& outcome,
                   const driver::Request& request, const driver::FootprintTerms& footprint,
                   const std::optional<Taken>& taken) {
  FoundBy asked;
  asked.solver = request.solver;
  asked.seed = request.seed;
  asked.time_limit = request.limits.seconds;
  asked.work_limit = request.limits.work;
  PlanFile file = plan_file(question, outcome, std::move(asked));
  claim_full_link(file, question.problem.graph, full_link);
  driver::claim_footprint(file, footprint, taken);
  io::write_text_file(path, io::write_plan(file));
}

namespace {

std::string status_word(const driver::Answer& answer) {
  return answer.support.yes ? std::string(to_string(answer.outcome.status)) : "unsupported";
}

// Once a budget is refuted, nobody looks for lean plans any more.
std::string smallest_text(const Outcome& outcome) {
  return fmt::format("{} {}", report::exact_bytes_text(*outcome.smallest_peak),
                     outcome.status == Status::infeasible
                         ? "is the smallest peak seen; lowtide curve looks for smaller ones"
                         : "was the smallest peak found");
}

// The transforms of the plan or, without a plan, those of the request.
const std::vector<Transform>& transforms_of(const PlanSummary& summary) {
  const std::optional<Plan>& plan = summary.answer.outcome.plan;
  return plan ? plan->transforms : summary.terms.transforms;
}

// The plans that bound and floor refer to: plans of one transformed graph (with the plan's or the
// given transforms), or plans with any transforms. Empty without transforms, and for an unsupported
// problem.
std::optional<BoundScope> scope_of(const PlanSummary& summary) {
  if (!summary.answer.support.yes) return std::nullopt;
  if (!summary.looked_for_transforms)
    return summary.terms.transforms.empty() ? std::nullopt : std::optional(BoundScope::graph);
  return summary.answer.outcome.plan ? BoundScope::graph : BoundScope::techniques;
}

using Json = nlohmann::ordered_json;

Json if_any(bool there, const auto& value) { return there ? Json(value) : Json(); }
Json if_there(const auto& value) { return value ? Json(value->count()) : Json(); }

// What the plan takes, if the budget limits that.
Json taken_json(const PlanSummary& summary, Footprint kind) {
  return summary.footprint.kind == kind && summary.taken ? Json(summary.taken->bytes.count())
                                                         : Json();
}

// The plan's duration over the full link, without the reserved tenth, if it differs.
std::optional<Ticks> full_link_duration(const PlanSummary& summary) {
  const std::optional<Plan>& plan = summary.answer.outcome.plan;
  if (!plan || !transfers(*plan) || !summary.terms.full_link) return std::nullopt;
  return duration_over(summary.graph, *plan, *summary.terms.full_link);
}

std::string link_text(double price) {
  if (price == 0) return "no bottleneck: idle for a part of the time of the bound";
  return fmt::format("the bottleneck: 1% more bytes a second saves about {:.2g}% of the time",
                     price);
}

Json model_json(const ModelClaim& model) {
  return {{"name", model.name},
          {"status", to_string(status_of(model))},
          {"bound", if_any(!model.infeasible, model.bound.count())}};
}

}  // namespace

std::string summary_text(const PlanSummary& summary, const report::TerminalStyle& style) {
  const Graph& graph = summary.graph;
  const Outcome& outcome = summary.answer.outcome;
  const Ticks base = own_duration(graph);
  std::string out;
  const auto row = [&](std::string_view key, const std::string& value) {
    out += fmt::format("{:<10} {}\n", key, value);
  };
  row("graph", report::graph_text(graph, style.width - 11, style.unicode));
  for (const auto& effect : report::effects_of(graph, transforms_of(summary)))
    row("transform", report::effect_text(effect, base));
  const std::string footprint(to_string(summary.footprint.kind));
  const bool is_live = summary.footprint.kind == Footprint::live;
  row("budget", report::exact_bytes_text(summary.budget) + (is_live ? "" : ", of " + footprint));
  if (const std::string settings = layout::to_string(summary.footprint.allocator);
      !settings.empty())
    row("allocator", settings);
  if (!summary.answer.support.yes) {
    row("status",
        fmt::format("unsupported by {}: {}", summary.solver, summary.answer.support.reason));
    return out;
  }
  const std::string floor =
      fmt::format("{}no plan can need less than {}",
                  summary.terms.transforms.empty() ? "" : "with these transforms ",
                  report::exact_bytes_text(outcome.bound.peak));
  if (outcome.plan) {
    const double bound = overhead_percent(outcome.bound.duration, base);
    row("status", fmt::format("{}, stopped by: {}", to_string(outcome.status),
                              to_string(outcome.stopped_by)));
    if (!is_live && summary.taken) row(footprint, report::exact_bytes_text(summary.taken->bytes));
    row("peak", report::exact_bytes_text(outcome.cost.peak));
    row("overhead", report::percent_text(overhead_percent(outcome.cost.duration, base)));
    row("bound", fmt::format("{}, gap {}{}", report::percent_text(bound),
                             report::percent_text(
                                 gap_percent(outcome.cost.duration, outcome.bound.duration)),
                             !outcome.plan->transforms.empty() ? ", with these transforms"
                             : summary.looked_for_transforms   ? ", without transforms"
                                                               : ""));
    if (const auto price = outcome.link_price) row("link", link_text(*price));
    row("duration", fmt::format("{} (without recomputation {})",
                                report::ticks_text(outcome.cost.duration, graph.tick()),
                                report::ticks_text(base, graph.tick())));
    if (const auto full = full_link_duration(summary))
      row("full link", fmt::format("{}, overhead {}: if no other traffic uses the link",
                                   report::ticks_text(*full, graph.tick()),
                                   report::percent_text(overhead_percent(*full, base))));
    if (transfers(*outcome.plan) || graph.has_network_ops()) {
      const PlanOnGraph on(graph, *outcome.plan);
      const Timeline timeline = simulate(on.graph(), on.plan());
      const report::Lanes lanes = report::lanes_of(on.graph(), on.plan(), timeline);
      if (!lanes.copies.empty()) row("copied", report::copied_text(lanes, graph.tick()));
      if (!lanes.sent.empty()) row("network", report::network_text(lanes, graph.tick()));
    }
    if (transfers(*outcome.plan)) row("host", report::exact_bytes_text(outcome.cost.host_peak));
  } else if (outcome.status == Status::infeasible) {
    row("status", "infeasible: " + floor);
  } else {
    row("status", fmt::format("unknown: no plan was found within the budget, stopped by: {}",
                              to_string(outcome.stopped_by)));
    row("floor", floor);
    if (outcome.bound.duration > base)
      row("bound",
          fmt::format("no plan can lose less than {}",
                      report::percent_text(overhead_percent(outcome.bound.duration, base))));
  }
  if (!outcome.plan && outcome.smallest_peak) row("smallest", smallest_text(outcome));
  row("solver", outcome.found_by.empty() || outcome.found_by == summary.solver
                    ? summary.solver
                    : fmt::format("{} ({})", summary.solver, outcome.found_by));
  if (outcome.model)
    row("model",
        outcome.model->infeasible
            ? fmt::format("{}: no plan within the budget", outcome.model->name)
            : fmt::format("{}: bound {}{}", outcome.model->name,
                          report::percent_text(overhead_percent(outcome.model->bound, base)),
                          outcome.model->optimal ? ", optimal" : ""));
  row("time", fmt::format("{:.3f} s", summary.seconds));
  if (const std::string parts = report::parts_text(outcome.parts, base, style); !parts.empty())
    out += "found by\n" + parts;
  if (!outcome.note.empty()) row("note", outcome.note);
  if (!summary.plan_file.empty())
    row("written", fmt::format("{}{}", summary.plan_file, outcome.plan ? "" : " (without steps)"));
  return out;
}

std::string summary_json(const PlanSummary& summary) {
  const Outcome& outcome = summary.answer.outcome;
  const Ticks base = own_duration(summary.graph);
  const bool ran = summary.answer.support.yes;
  const bool found = outcome.plan.has_value();
  const bool bounded =
      ran && outcome.status != Status::infeasible && (found || !summary.looked_for_transforms);
  const auto scope = scope_of(summary);
  const double gap = gap_percent(outcome.cost.duration, outcome.bound.duration);
  Json transforms = Json::array(), effects = Json::array();
  for (const auto& effect : report::effects_of(summary.graph, transforms_of(summary))) {
    transforms.push_back(effect.text);
    effects.push_back({{"transform", effect.text},
                       {"own_peak_before", effect.peak_before.count()},
                       {"own_peak", effect.peak.count()},
                       {"added_time", effect.added.count()}});
  }
  Json history = Json::array();
  for (const Incumbent& found_then : outcome.history)
    history.push_back({{"time", found_then.seconds},
                       {"duration", found_then.cost.duration.count()},
                       {"peak", found_then.cost.peak.count()}});
  Json parts = Json::array();
  for (const PortfolioPart& part : outcome.parts)
    parts.push_back({{"name", part.name},
                     {"time", part.seconds},
                     {"work", part.work},
                     {"plans", part.plans},
                     {"won", part.won.count()},
                     {"bound", part.bound.count()}});
  Json json = {
      {"status", status_word(summary.answer)},
      {"solver", summary.solver},
      {"found_by", if_any(!outcome.found_by.empty(), outcome.found_by)},
      {"order", to_string(summary.terms.order)},
      {"seed", summary.seed},
      {"budget", summary.budget.count()},
      {"footprint", to_string(summary.footprint.kind)},
      {"arena", taken_json(summary, Footprint::arena)},
      {"reserved", taken_json(summary, Footprint::reserved)},
      {"techniques", names_of(summary.terms)},
      {"transforms", transforms},
      {"transform_effects", effects},
      {"host_budget", if_there(summary.terms.host_budget)},
      {"peak", if_any(found, outcome.cost.peak.count())},
      {"host_peak", if_any(found, outcome.cost.host_peak.count())},
      {"duration", if_any(found, outcome.cost.duration.count())},
      {"duration_full_link", if_there(full_link_duration(summary))},
      {"base_duration", base.count()},
      {"overhead_percent", if_any(found, overhead_percent(outcome.cost.duration, base))},
      {"bound", if_any(bounded, outcome.bound.duration.count())},
      {"bound_scope", scope ? Json(to_string(*scope)) : Json()},
      {"gap_percent", if_any(found && std::isfinite(gap), gap)},
      {"link_price", outcome.link_price ? Json(*outcome.link_price) : Json()},
      {"smallest_peak", if_there(outcome.smallest_peak)},
      {"floor", if_any(ran, outcome.bound.peak.count())},
      {"stopped_by", if_any(ran, to_string(outcome.stopped_by))},
      {"time_s", summary.seconds},
      {"plan_file", if_any(!summary.plan_file.empty(), summary.plan_file)},
      {"reason",
       if_any(!ran || !outcome.note.empty(), ran ? outcome.note : summary.answer.support.reason)},
      {"model", outcome.model ? model_json(*outcome.model) : Json()},
      {"parts", parts},
      {"history", history},
  };
  return json.dump() + "\n";
}

}  // namespace lowtide::cli

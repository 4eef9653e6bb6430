#include "lowtide/cli/show_output.h"

#include <cstddef>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/report/plot_text.h"
#include "lowtide/report/units_text.h"

namespace lowtide::cli {

namespace {

using Json = nlohmann::ordered_json;

const std::string& name_of(const Graph& graph, TensorId id) { return graph.tensor(id).name; }

std::string target_of(const Graph& graph, const Step& step) {
  std::string name = step.is_compute() ? graph.op(step.op()).name : name_of(graph, step.tensor());
  if (!name.empty()) return name;
  return step.is_compute() ? graph.label(step.op()) : graph.label(step.tensor());
}

Json figures_json(const report::Run& run, const std::optional<Bytes>& xla_total) {
  const Cost& cost = run.timeline.cost;
  return {{"peak", cost.peak.count()},
          {"duration", cost.duration.count()},
          {"overhead_percent", run.overhead_percent},
          {"recomputations", run.recomputed_steps.size()},
          {"xla_total", xla_total ? Json(xla_total->count()) : Json()}};
}

}  // namespace

std::string steps_text(const Graph& graph, const report::Report& report) {
  const report::Run& run = report.shown();
  const Graph& shown = run.graph(graph);
  std::string text;
  // After a rule is broken nothing is simulated.
  for (std::size_t i = 0; i < run.timeline.live.size(); ++i) {
    const Step& step = run.plan.steps[i];
    std::string over;
    for (const TensorId id : run.plan.overwritten(step))
      over += (over.empty() ? " over " : ", ") + name_of(shown, id);
    text += fmt::format("{:>6}  {:>9}  {:<8}  {}{}\n", i, report::bytes_text(run.timeline.live[i]),
                        step.is_compute() ? "compute" : to_string(step.kind),
                        report::clean_text(target_of(shown, step)), report::clean_text(over));
  }
  return text;
}

std::string report_json(const Graph& graph, const report::Report& report) {
  const report::Run& run = report.shown();
  const Graph& shown = run.graph(graph);
  Json json = {{"graph", report.name},
               {"ops", report.ops},
               {"tensors", report.tensors},
               {"tick", to_string(report.tick)},
               {"unplanned", figures_json(report.before, report.xla_before)},
               {"plan", report.after ? figures_json(*report.after, report.xla_after) : Json()}};
  json["unplanned"]["peak_in_place"] =
      report.peak_in_place ? Json(report.peak_in_place->count()) : Json();
  json["steps"] = Json::array();
  for (std::size_t i = 0; i < run.timeline.live.size(); ++i) {
    const Step& step = run.plan.steps[i];
    Json one = {to_string(step.kind), target_of(shown, step)};
    for (const TensorId id : run.plan.overwritten(step)) one.push_back(name_of(shown, id));
    json["steps"].push_back({{"step", std::move(one)}, {"live", run.timeline.live[i].count()}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lowtide::cli

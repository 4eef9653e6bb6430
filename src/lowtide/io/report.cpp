// Two simulations and one pass over the steps of each; what is live at a peak comes from sim too.
#include "lowtide/io/report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace lowtide {

namespace {

double share_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string label_of(const Graph& graph, const Step& step) {
  return std::string(to_string(step.kind)) + " of " +
         (step.is_compute() ? graph.label(step.op()) : graph.label(step.tensor()));
}

std::vector<TensorId> tensors_at_peak(const Graph& graph, const Run& run) {
  if (run.peak_step < run.timeline.live.size()) return live_tensors(graph, run.plan, run.peak_step);
  // The start has the most; what live_tensors knows past the last step is the end.
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.is_input(TensorId(i))) inputs.push_back(TensorId(i));
  return inputs;
}

LiveTensor describe(const Graph& graph, TensorId id, Bytes peak) {
  const Tensor& tensor = graph.tensor(id);
  LiveTensor live{.id = id,
                  .name = tensor.name,
                  .bytes = tensor.bytes,
                  .share = share_of(tensor.bytes.count(), peak.count()),
                  .role = tensor.role,
                  .origin = {},
                  .producer = {}};
  if (const OpId producer = graph.producer(id); producer.valid()) {
    live.origin = graph.op(producer).origin;
    live.producer = graph.op(producer).name;
  }
  return live;
}

void describe_peak(const Graph& graph, Run& run) {
  run.peak_step = run.timeline.peak_step();
  run.peak_what = "the start";
  if (run.peak_step < run.timeline.live.size()) {
    const Step& step = run.plan.steps[run.peak_step];
    run.peak_what = label_of(graph, step);
    if (step.is_compute()) run.workspace = graph.workspace(step.op());
  }

  std::vector<TensorId> live = tensors_at_peak(graph, run);
  std::map<Role, RoleBytes> roles;
  for (TensorId id : live) {
    RoleBytes& role = roles[graph.tensor(id).role];
    role.role = graph.tensor(id).role;
    role.bytes += graph.bytes(id);
    ++role.tensors;
  }
  for (const auto& [role, bytes] : roles) run.by_role.push_back(bytes);
  std::stable_sort(run.by_role.begin(), run.by_role.end(),
                   [](const RoleBytes& a, const RoleBytes& b) { return a.bytes > b.bytes; });

  const std::size_t count = std::min(live.size(), Run::kLargest);
  std::partial_sort(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(count), live.end(),
                    [&](TensorId a, TensorId b) {
                      return std::pair(graph.bytes(b), a) < std::pair(graph.bytes(a), b);
                    });
  for (std::size_t i = 0; i < count; ++i)
    run.largest.push_back(describe(graph, live[i], run.timeline.cost.peak));
}

Run make_run(const Graph& graph, Plan plan) {
  Run run;
  run.plan = std::move(plan);
  run.timeline = simulate(graph, run.plan);
  std::vector<std::uint8_t> computed(graph.op_count(), 0);
  for (std::size_t i = 0; i < run.timeline.live.size(); ++i) {
    const Step& step = run.plan.steps[i];
    run.transfers += step.kind == StepKind::offload || step.kind == StepKind::prefetch;
    if (!step.is_compute()) continue;
    ++run.computations;
    if (std::exchange(computed[step.op().index()], std::uint8_t{1}) == 0) continue;
    run.recomputed_steps.push_back(i);
    run.recomputed_time += graph.time(step.op());
  }
  run.overhead_percent = overhead_percent(run.timeline.cost.duration, graph.total_time());
  describe_peak(graph, run);
  return run;
}

std::string_view group_of(const Op& op) {
  return !op.origin.empty() ? op.origin : !op.kind.empty() ? op.kind : op.name;
}

void group_recomputed(const Graph& graph, const Run& run, Report& report) {
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<std::uint8_t> seen(graph.op_count(), 0);
  bool origins = false, kinds = false;
  for (std::size_t step : run.recomputed_steps) {
    const OpId id = run.plan.steps[step].op();
    const Op& op = graph.op(id);
    origins = origins || !op.origin.empty();
    kinds = kinds || !op.kind.empty();
    const auto [place, added] = places.try_emplace(group_of(op), report.recomputed.size());
    if (added) report.recomputed.emplace_back().what = place->first;
    Recomputed& group = report.recomputed[place->second];
    group.ops += seen[id.index()] == 0;
    seen[id.index()] = 1;
    ++group.times;
    group.time += graph.time(id);
  }
  for (Recomputed& group : report.recomputed)
    group.share = share_of(group.time.count(), run.recomputed_time.count());
  std::stable_sort(report.recomputed.begin(), report.recomputed.end(),
                   [](const Recomputed& a, const Recomputed& b) {
                     return std::pair(a.time, a.times) > std::pair(b.time, b.times);
                   });
  report.recomputed_by = origins ? "origin" : kinds ? "kind" : "op";
}

}  // namespace

Report make_report(const Graph& graph, const Plan* plan, std::optional<Bytes> budget) {
  Report report{.name = graph.name(),
                .tick = graph.tick(),
                .ops = graph.op_count(),
                .tensors = graph.tensor_count(),
                .resident = graph.resident(),
                .input_bytes = graph.input_bytes(),
                .base_duration = graph.total_time(),
                .budget = budget,
                .bound = std::nullopt,
                .before = make_run(graph, own_plan(graph)),
                .after = std::nullopt,
                .recomputed = {},
                .recomputed_by = "origin"};
  if (plan != nullptr) {
    report.after = make_run(graph, *plan);
    group_recomputed(graph, *report.after, report);
  }
  return report;
}

}  // namespace lowtide

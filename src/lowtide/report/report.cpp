// Two simulations and one pass over the steps of each; what is live at a peak comes from sim too.
#include "lowtide/report/report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lowtide/graph/origin.h"
#include "lowtide/layout/xla_total.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::report {

namespace {

double share_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string name_of(const Graph& graph, OpId id) {
  return graph.op(id).name.empty() ? graph.label(id) : graph.op(id).name;
}

std::string label_of(const Graph& graph, const Step& step) {
  if (step.kind == StepKind::compute_in_place)
    return "compute in place of " + graph.label(step.op());
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
                  .name = tensor.name.empty() ? graph.label(id) : tensor.name,
                  .bytes = tensor.bytes,
                  .share = share_of(tensor.bytes.count(), peak.count()),
                  .role = role_of(graph, id),
                  .origin = {},
                  .producer = {}};
  if (const OpId producer = graph.producer(id); producer.valid()) {
    live.origin = graph.op(producer).origin;
    live.producer = name_of(graph, producer);
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
    RoleBytes& role = roles[role_of(graph, id)];
    role.role = role_of(graph, id);
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

// The stretches at one depth. Steps that compute nothing belong to what is around them.
void add_stretches(const TransformedGraph& transformed, std::size_t depth, Run& run) {
  std::optional<Stretch> open;
  const auto close = [&] {
    if (open) run.stretches.push_back(*open);
    open.reset();
  };
  for (std::size_t i = 0; i < run.timeline.live.size(); ++i) {
    if (!run.plan.steps[i].is_compute()) continue;
    const std::vector<PartOf>& parts = transformed.parts[run.plan.steps[i].op()];
    const bool there = depth < parts.size();
    const auto transform = there ? static_cast<std::size_t>(parts[depth].transform) : 0;
    if (open && (!there || open->transform != transform || open->part != parts[depth].part))
      close();
    if (!there) continue;
    if (!open) open = Stretch{transform, parts[depth].part, depth, i, i};
    open->last = i;
  }
  close();
}

void find_stretches(const TransformedGraph& transformed, Run& run) {
  std::size_t deepest = 0;
  for (const auto& parts : transformed.parts) deepest = std::max(deepest, parts.size());
  for (std::size_t depth = 0; depth < deepest; ++depth) add_stretches(transformed, depth, run);
}

std::vector<Applied> applied_by(const std::vector<Transform>& transforms, const Run& run) {
  std::vector<Applied> all;
  all.reserve(transforms.size());
  for (const Transform& transform : transforms)
    all.push_back({.what = describe(transform), .ops = 0, .first = 0, .last = 0, .peak = {}});
  for (const auto& parts : run.transformed->parts)
    for (const PartOf& part : parts) ++all[static_cast<std::size_t>(part.transform)].ops;
  std::vector<std::uint8_t> seen(all.size(), 0);
  for (const Stretch& stretch : run.stretches) {
    Applied& one = all[stretch.transform];
    if (std::exchange(seen[stretch.transform], std::uint8_t{1}) == 0) one.first = stretch.first;
    one.first = std::min(one.first, stretch.first);
    one.last = std::max(one.last, stretch.last);
  }
  for (std::size_t k = 0; k < all.size(); ++k)
    for (std::size_t i = all[k].first; seen[k] != 0 && i <= all[k].last; ++i)
      all[k].peak = std::max(all[k].peak, run.timeline.live[i]);
  return all;
}

Run make_run(const Graph& original, Plan plan) {
  Run run;
  if (!plan.transforms.empty()) {
    run.transformed =
        std::make_shared<const TransformedGraph>(apply_transforms(original, plan.transforms));
    plan = on_transformed(*run.transformed, plan);
  }
  const Graph& graph = run.graph(original);
  run.plan = std::move(plan);
  run.timeline = simulate(graph, run.plan);
  std::vector<std::uint8_t> computed(graph.op_count(), 0);
  for (std::size_t i = 0; i < run.timeline.live.size(); ++i) {
    const Step& step = run.plan.steps[i];
    run.transfers += step.is_transfer();
    run.in_place += step.kind == StepKind::compute_in_place;
    if (!step.is_compute()) continue;
    ++run.computations;
    if (std::exchange(computed[step.op().index()], std::uint8_t{1}) == 0) continue;
    run.recomputed_steps.push_back(i);
    run.recomputed_time += graph.time(step.op());
  }
  run.lanes = lanes_of(graph, run.plan, run.timeline);
  run.overhead_percent = overhead_percent(run.timeline.cost.duration, own_duration(original));
  describe_peak(graph, run);
  if (run.transformed) find_stretches(*run.transformed, run);
  return run;
}

// The graph's own run, as if all were on the device from the start.
Run own_run(const Graph& graph) {
  if (graph.has_tensors_on_host()) return own_run(Graph(graph).with_homes_on_device());
  return make_run(graph, own_plan(graph));
}

std::string group_of(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  return !op.origin.empty() ? op.origin : !op.kind.empty() ? op.kind : name_of(graph, id);
}

// Adds up what is called alike, and puts the most time first.
std::vector<Recomputed> add_up(const std::vector<Recomputed>& parts) {
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<Recomputed> sums;
  std::int64_t all = 0;
  for (const Recomputed& part : parts) {
    const auto [place, added] = places.try_emplace(part.what, sums.size());
    if (added) sums.emplace_back().what = part.what;
    Recomputed& sum = sums[place->second];
    sum.ops += part.ops;
    sum.times += part.times;
    sum.time += part.time;
    all += part.time.count();
  }
  for (Recomputed& sum : sums) sum.share = share_of(sum.time.count(), all);
  std::stable_sort(sums.begin(), sums.end(), [](const Recomputed& a, const Recomputed& b) {
    return std::pair(a.time, a.times) > std::pair(b.time, b.times);
  });
  return sums;
}

void group_recomputed(const Graph& graph, const Run& run, Report& report) {
  std::vector<std::uint8_t> seen(graph.op_count(), 0);
  bool origins = false, kinds = false;
  std::vector<Recomputed> parts;
  for (std::size_t step : run.recomputed_steps) {
    const OpId id = run.plan.steps[step].op();
    const Op& op = graph.op(id);
    origins = origins || !op.origin.empty();
    kinds = kinds || !op.kind.empty();
    parts.push_back({.what = group_of(graph, id),
                     .ops = std::exchange(seen[id.index()], std::uint8_t{1}) == 0 ? 1u : 0u,
                     .times = 1,
                     .time = graph.time(id)});
  }
  report.recomputed = add_up(std::move(parts));
  report.recomputed_by = origins ? "origin" : kinds ? "kind" : "op";

  parts = report.recomputed;
  for (Recomputed& part : parts) part.what = origin_pattern(part.what);
  parts = add_up(std::move(parts));
  if (parts.size() < report.recomputed.size()) report.recomputed_alike = std::move(parts);
}

std::string notice_of(const Graph& graph, const Run& run) {
  if (run.plan.steps.empty() && graph.op_count() > 0) return "The plan has no steps.";
  if (!run.timeline.violation) return {};
  return "The plan breaks a rule at step " + std::to_string(run.timeline.violation->step) + ": " +
         run.timeline.violation->reason;
}

// Figures of the given order with ops in place, and those of XLA.
void add_in_place(const Graph& graph, const Plan* plan, Report& report) {
  const bool is_hlo = graph.op_count() > 0 && graph.op(OpId(0)).kind.starts_with("hlo.");
  if (report.before.timeline.violation || (!graph.has_overwrites() && !is_hlo)) return;
  const Plan own = plan_from_sequence(graph, graph.order());
  if (graph.has_overwrites()) report.peak_in_place = simulate(graph, own).cost.peak;
  if (!is_hlo) return;
  report.xla_before = layout::xla_total(graph, own);
  const bool runs = plan != nullptr && plan->transforms.empty() && !transfers(*plan) &&
                    !plan->steps.empty() && !simulate(graph, *plan).violation;
  if (runs) report.xla_after = layout::xla_total(graph, *plan);
}

}  // namespace

Role role_of(const Graph& graph, TensorId id) {
  const Role role = graph.tensor(id).role;
  const bool made = role == Role::activation || role == Role::gradient;
  return graph.is_input(id) && made ? Role::input : role;
}

Report make_report(const Graph& graph, const Plan* plan, std::optional<Bytes> budget) {
  Report report{.name = graph.name(),
                .tick = graph.tick(),
                .ops = graph.op_count(),
                .tensors = graph.tensor_count(),
                .resident = graph.resident(),
                .input_bytes = graph.input_bytes(),
                .base_duration = own_duration(graph),
                .budget = budget,
                .bound = std::nullopt,
                .before = own_run(graph),
                .after = std::nullopt,
                .transforms = {},
                .recomputed = {},
                .recomputed_alike = {},
                .recomputed_by = "origin",
                .blocks = repetitions(graph),
                .notice = {}};
  add_in_place(graph, plan, report);
  if (plan != nullptr) {
    report.after = make_run(graph, *plan);
    const Graph& after = report.after->graph(graph);
    group_recomputed(after, *report.after, report);
    report.notice = notice_of(after, *report.after);
    if (report.after->transformed) report.transforms = applied_by(plan->transforms, *report.after);
  }
  return report;
}

}  // namespace lowtide::report

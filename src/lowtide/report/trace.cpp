#include "lowtide/report/trace.h"

#include <algorithm>

#include <fmt/format.h>

#include "lowtide/base/error.h"

namespace lowtide::report {

namespace {

class Tracer {
 public:
  Tracer(const Graph& graph, const Report& report)
      : run_(report.shown()),
        graph_(run_.graph(graph)),
        each_(nanoseconds(graph.tick()) == 0 ? 1000 : nanoseconds(graph.tick())) {
    trace_.name = report.name.empty() ? "plan" : report.name;
  }

  Trace trace() {
    add_computations();
    for (const bool out : {true, false})
      for (const Copy& copy : run_.lanes.copies)
        if (copy.out == out) add_copy(copy);
    for (const Stretch& stretch : run_.stretches) add_part(stretch);
    std::ranges::stable_sort(trace_.slices, [](const TraceSlice& a, const TraceSlice& b) {
      if (a.lane != b.lane) return a.lane < b.lane;
      if (a.begin != b.begin || a.lane != TraceLane::parts) return a.begin < b.begin;
      return a.end > b.end;
    });
    count();
    return std::move(trace_);
  }

 private:
  std::int64_t time(Ticks ticks) const {
    std::int64_t found = 0;
    if (__builtin_mul_overflow(ticks.count(), each_, &found))
      throw InputError("", "the plan takes 2^63 ns or more, which does not fit into a trace");
    return found;
  }

  void add_computations() {
    auto again = run_.recomputed_steps.begin();
    for (std::size_t i = 0; i < run_.timeline.end.size(); ++i) {
      const Step& step = run_.plan.steps[i];
      if (!step.is_compute()) continue;
      const Op& op = graph_.op(step.op());
      const bool recomputed = again != run_.recomputed_steps.end() && *again == i;
      if (recomputed) ++again;
      const bool computes = on_compute_lane(graph_, step);
      trace_.slices.push_back({.lane = computes ? TraceLane::compute : TraceLane::network,
                               .begin = time(run_.timeline.begin[i]),
                               .end = time(run_.timeline.end[i]),
                               .name = op.name.empty() ? graph_.label(step.op()) : op.name,
                               .category = recomputed ? "recomputed" : op.phase,
                               .origin = op.origin,
                               .kind = op.kind,
                               .step = static_cast<std::int64_t>(i)});
    }
  }

  void add_copy(const Copy& copy) {
    const std::string& name = graph_.tensor(copy.tensor).name;
    trace_.slices.push_back({.lane = copy.out ? TraceLane::out : TraceLane::in,
                             .begin = time(copy.begin),
                             .end = time(copy.end),
                             .name = name.empty() ? graph_.label(copy.tensor) : name,
                             .category = "copy",
                             .step = static_cast<std::int64_t>(copy.step),
                             .bytes = graph_.bytes(copy.tensor)});
  }

  void add_part(const Stretch& stretch) {
    if (stretch.last >= run_.timeline.end.size()) return;
    trace_.slices.push_back(
        {.lane = TraceLane::parts,
         .begin = time(run_.timeline.begin[stretch.first]),
         .end = time(run_.timeline.end[stretch.last]),
         .name =
             stretch.part < 0
                 ? fmt::format("before the parts of transform {}", stretch.transform + 1)
                 : fmt::format("part {} of transform {}", stretch.part + 1, stretch.transform + 1),
         .category = "part",
         .step = static_cast<std::int64_t>(stretch.first)});
  }

  void count() {
    trace_.counter.push_back({0, run_.timeline.start});
    Ticks now;
    for (std::size_t i = 0; i < run_.timeline.live.size(); ++i) {
      const Bytes live = run_.timeline.live[i];
      if (live != trace_.counter.back().live) trace_.counter.push_back({time(now), live});
      now = run_.timeline.clock[i];
    }
    // So that the last level is seen up to the end.
    trace_.counter.push_back({time(run_.timeline.cost.duration), trace_.counter.back().live});
  }

  const Run& run_;
  const Graph& graph_;
  const std::int64_t each_;  // nanoseconds of a tick
  Trace trace_;
};

}  // namespace

std::string_view to_string(TraceLane lane) {
  switch (lane) {
    case TraceLane::compute: return "compute";
    case TraceLane::out: return "copies out";
    case TraceLane::in: return "copies in";
    case TraceLane::network: return "network";
    case TraceLane::parts: return "parts";
  }
  return {};
}

Trace trace_of(const Graph& graph, const Report& report) { return Tracer(graph, report).trace(); }

TraceFormat trace_format(std::string_view file) {
  if (file.ends_with(".pftrace")) return TraceFormat::perfetto;
  if (file.ends_with(".json") || file.ends_with(".json.gz")) return TraceFormat::chrome;
  throw InputError(std::string(file),
                   "a trace is written to a file that ends in .json or .json.gz (Chrome) or "
                   ".pftrace (Perfetto)");
}

std::string write_trace(const Trace& trace, TraceFormat format) {
  return format == TraceFormat::chrome ? chrome_trace(trace) : perfetto_trace(trace);
}

}  // namespace lowtide::report

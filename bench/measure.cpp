// Runs a solver once and watches.
#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "lowtide/base/error.h"

namespace lowtide::bench {

namespace {

// Linux forgets the largest size so far on this write; without that, a run would show its
// predecessors' memory. The allocator hands back first what it kept of theirs.
bool forget_peak() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

std::optional<Bytes> peak_resident() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word != "VmHWM:") continue;
    std::int64_t kib = 0;
    if (file >> kib) return Bytes(kib * 1024);
  }
  return std::nullopt;
}

Point point_of(const Graph& graph, double seconds, const Ticks* duration, Ticks bound) {
  const Ticks base = graph.total_time();
  Point point{seconds, std::nullopt, overhead_percent(std::max(base, bound), base)};
  if (duration != nullptr) point.overhead = overhead_percent(*duration, base);
  return point;
}

}  // namespace

std::optional<double> Measurement::overhead_at(double at, std::optional<double> limit) const {
  if (!limit || (at > *limit && !finished)) return std::nullopt;
  // The last plan may come a little after the deadline: it is what the user gets.
  if (at >= *limit) return overhead();
  std::optional<double> found;
  for (const Point& point : points)
    if (point.seconds <= at) found = point.overhead;
  return found;
}

std::optional<double> Measurement::first_plan() const {
  for (const Point& point : points)
    if (point.overhead) return point.seconds;
  return std::nullopt;
}

std::optional<double> Measurement::within() const {
  if (!overhead()) return std::nullopt;
  const double more = *overhead() - bound();
  if (bound() > 0) return 100 * more / bound();
  return more <= 0.05 ? 0 : std::numeric_limits<double>::infinity();
}

Measurement measure(const solve::SolverTable& solvers, const Question& question,
                    driver::Request request) {
  const Graph& graph = question.problem.graph;
  Measurement result;
  request.watcher = [&](const solve::Progress& progress) {
    const Ticks* duration = progress.plan != nullptr ? &progress.cost.duration : nullptr;
    result.points.push_back(point_of(graph, progress.seconds, duration, progress.bound.duration));
  };
  const bool fresh = forget_peak();
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  try {
    const driver::Answer answer = driver::solve(solvers, question, request);
    const Outcome& outcome = answer.outcome;
    result.seconds = elapsed();
    result.status = answer.support.yes ? to_string(outcome.status) : "unsupported";
    result.found_by = outcome.found_by;
    result.finished = by_itself(outcome.stopped_by);
    if (outcome.plan) {
      result.gap = gap_percent(outcome.cost.duration, outcome.bound.duration);
      result.peak = outcome.cost.peak;
    }
    result.points.push_back(point_of(graph, result.seconds,
                                     outcome.plan ? &outcome.cost.duration : nullptr,
                                     outcome.bound.duration));
  } catch (const InternalError& error) {
    result.seconds = elapsed();
    result.status = "failed";
    result.failure = error.what();
    result.points.push_back(point_of(graph, result.seconds, nullptr, graph.total_time()));
  }
  if (fresh) result.resident = peak_resident();
  return result;
}

}  // namespace lowtide::bench

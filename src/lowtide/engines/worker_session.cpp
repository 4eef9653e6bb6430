// Whatever the worker does, this returns: it dies, hangs, floods or talks nonsense at its own cost.
#include "lowtide/engines/worker_session.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "lowtide/engines/memory.h"
#include "lowtide/engines/process.h"

namespace lowtide::engines {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPollMs = 5;
constexpr double kGrace = 1.0;  // seconds beyond the clock
// Leaves room for what is said beside it.
constexpr std::size_t kMostModel = kMostFrame - (std::size_t{1} << 16);

// Numbers that make no sense are not handed on to be computed with.
bool understood(std::string_view message, EngineReport& report) {
  return EngineReport::decode(message, report) && is_sane(report.value) && is_sane(report.effort) &&
         report.effort >= 0 && std::ranges::all_of(report.reals, is_sane);
}

}  // namespace

EngineRequest request_for(EngineKind kind, const EngineState& engine, const EngineLimits& limits) {
  EngineRequest request;
  request.engine = kind;
  request.library = engine.paths.library;
  // What it found must have arrived before our clock runs out.
  if (limits.seconds) request.seconds = std::max(0.01, *limits.seconds * 0.99 - 0.03);
  request.effort = limits.effort.value_or(0);
  request.memory_bytes = limits.memory_bytes > 0 ? limits.memory_bytes : free_memory() / 5 * 4;
  request.threads = std::max(1, limits.threads);
  request.seed = static_cast<std::int64_t>(limits.seed & 0x7fffffff);
  request.stream = limits.seconds.has_value();
  return request;
}

EngineEnd run_session(const EngineState& engine, const EngineRequest& request,
                      const EngineLimits& limits,
                      const std::function<std::string(const EngineReport&)>& take) {
  EngineEnd end;
  if (!engine.missing.empty()) {
    end.failure = "it needs " + engine.missing;
    return end;
  }
  const std::size_t bytes = request.model.size() + request.hint.size();
  if (bytes > kMostModel) {
    end.failure = "the model is too large for a worker: " + std::to_string(bytes) + " bytes";
    return end;
  }
  const auto begin = Clock::now();
  const std::string name(to_string(request.engine));
  const auto late = [&] {
    return limits.seconds &&
           std::chrono::duration<double>(Clock::now() - begin).count() > *limits.seconds + kGrace;
  };
  const auto stop = [&] { return (limits.stop && limits.stop()) || late(); };
  WorkerProcess worker(engine.paths.worker);
  if (!worker.started()) {
    end.failure = engine.paths.worker + " " + worker.failure();
    return end;
  }
  auto event = worker.send(request.encode(), stop);
  std::string message;
  EngineReport report;
  while (event != WorkerProcess::Event::ended) {
    if (limits.stop && limits.stop()) {
      end.stopped = true;
      return end;
    }
    if (late()) {
      end.failure = name + " did not stop at its time limit";
      return end;
    }
    event = worker.receive(message, kPollMs);
    if (event == WorkerProcess::Event::nonsense ||
        (event == WorkerProcess::Event::message && !understood(message, report))) {
      end.failure = "the worker talks nonsense";
      return end;
    }
    if (event != WorkerProcess::Event::message) continue;
    if (report.kind == EngineReport::done) {
      end.status = report.status;
      if (report.has_bound) end.bound = report.value;
      end.effort = report.effort;
      return end;
    }
    if (report.kind == EngineReport::failed) {
      end.failure = name + ": " + report.text;
      return end;
    }
    if (std::string refused = take(report); !refused.empty()) {
      end.failure = name + " " + refused;
      return end;
    }
  }
  end.failure = name + " " + worker.failure();
  return end;
}

void conclude(EngineEnd& end, EngineKind kind, bool solved, std::optional<double> bound) {
  const bool claims = end.status == EngineStatus::optimal || end.status == EngineStatus::feasible;
  if (claims && !solved) {
    end.status = EngineStatus::unknown;
    end.failure = std::string(to_string(kind)) + " claims an answer without a solution";
  }
  if (bound) end.bound = std::max(end.bound.value_or(*bound), *bound);
  if (end.status == EngineStatus::unknown && solved) end.status = EngineStatus::feasible;
}

}  // namespace lowtide::engines

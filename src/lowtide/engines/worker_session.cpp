// Returns whatever the worker does: it may crash, hang, flood or send garbage.
#include "lowtide/engines/worker_session.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "lowtide/engines/memory.h"

namespace lowtide::engines {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPollMs = 5;
constexpr double kGrace = 1.0;  // seconds beyond the time limit
// Leaves room for the rest of the message.
constexpr std::size_t kMostModel = kMostFrame - (std::size_t{1} << 16);

// Impossible numbers are not passed on.
bool understood(std::string_view message, EngineReport& report) {
  return EngineReport::decode(message, report) && is_sane(report.value) && is_sane(report.effort) &&
         report.effort >= 0 && std::ranges::all_of(report.reals, is_sane);
}

}  // namespace

EngineRequest request_for(EngineKind kind, const EngineState& engine, const EngineLimits& limits) {
  EngineRequest request;
  request.engine = kind;
  request.library = engine.paths.library;
  // Its results must arrive before our time limit.
  if (limits.seconds) request.seconds = std::max(0.01, *limits.seconds * 0.99 - 0.03);
  request.effort = limits.effort.value_or(0);
  request.memory_bytes = limits.memory_bytes > 0 ? limits.memory_bytes : free_memory() / 5 * 4;
  request.threads = std::max(1, limits.threads);
  request.seed = static_cast<std::int64_t>(limits.seed & 0x7fffffff);
  request.stream = limits.seconds.has_value();
  return request;
}

// One request to one worker.
class WorkerSession::Conversation {
 public:
  Conversation(const EngineRequest& request, const EngineLimits& limits, const Take& take)
      : request_(request), limits_(limits), take_(take), name_(to_string(request.engine)) {}

  // Whether the worker can be used again; not if it has ended, or must be killed.
  bool run(WorkerProcess& worker) {
    const auto stop = [&] { return (limits_.stop && limits_.stop()) || late(); };
    auto event = worker.send(request_.encode(), stop);
    std::string message;
    EngineReport report;
    while (event != WorkerProcess::Event::ended) {
      if (limits_.stop && limits_.stop()) {
        end.stopped = true;
        return false;
      }
      if (late()) return fails(name_ + " did not stop at its time limit");
      event = worker.receive(message, kPollMs);
      if (event == WorkerProcess::Event::nonsense ||
          (event == WorkerProcess::Event::message && !understood(message, report)))
        return fails("the worker talks nonsense");
      if (event != WorkerProcess::Event::message) continue;
      answered = true;
      if (report.kind == EngineReport::done) {
        end.status = report.status;
        if (report.has_bound) end.bound = report.value;
        end.effort = report.effort;
        return true;
      }
      if (report.kind == EngineReport::failed) return fails(name_ + ": " + report.text);
      if (std::string refused = take_(report); !refused.empty())
        return fails(name_ + " " + refused);
    }
    return fails(name_ + " " + worker.failure());
  }

  EngineEnd end;
  bool answered = false;  // whether it has sent a report

 private:
  bool late() const {
    const std::chrono::duration<double> passed = Clock::now() - begin_;
    return limits_.seconds && passed.count() > *limits_.seconds + kGrace;
  }
  bool fails(std::string why) {
    end.failure = std::move(why);
    return false;
  }

  const EngineRequest& request_;
  const EngineLimits& limits_;
  const Take& take_;
  std::string name_;
  Clock::time_point begin_ = Clock::now();
};

EngineEnd WorkerSession::run(const EngineRequest& request, const EngineLimits& limits,
                             const Take& take) {
  EngineEnd end;
  if (!engine_.missing.empty()) {
    end.failure = "it needs " + engine_.missing;
    return end;
  }
  const std::size_t bytes = request.model.size() + request.hint.size();
  if (bytes > kMostModel) {
    end.failure = "the model is too large for a worker: " + std::to_string(bytes) + " bytes";
    return end;
  }
  if (threads_ != request.threads) worker_ = nullptr;
  Conversation talk(request, limits, take);
  // A worker that has died since the last request has not received this one.
  const bool waiting = worker_ != nullptr;
  bool kept = waiting && talk.run(*worker_);
  if (!waiting || (!kept && !talk.answered && !talk.end.stopped && worker_->has_ended())) {
    worker_ = std::make_unique<WorkerProcess>(engine_.paths.worker);
    threads_ = request.threads;
    if (!worker_->started()) {
      end.failure = engine_.paths.worker + " " + worker_->failure();
      worker_ = nullptr;
      return end;
    }
    talk.end = {};
    kept = talk.run(*worker_);
  }
  if (!kept || !request.more) worker_ = nullptr;
  return std::move(talk.end);
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

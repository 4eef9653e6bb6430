// A clock makes what an engine finds depend on the machine; without one it must not.
#include "lowtide/solve/exact/common/engine_run.h"

#include <algorithm>

namespace lowtide::solve::exact {

bool EngineRun::stop() {
  Limits& limits = context_.limits();
  if (!clocked()) {
    const CancelToken* cancel = limits.settings().cancel;
    if (cancel == nullptr || !cancel->cancelled()) return false;
    return limits.spend(Limits::kPollWork);
  }
  const auto now = Clock::now();
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(now - last_).count();
  last_ = now;
  return limits.spend(std::max<std::int64_t>(1, passed));
}

engines::EngineLimits EngineRun::limits() {
  engines::EngineLimits result;
  result.seed = context_.seed();
  const LimitSettings left = context_.limits().remaining();
  if (clocked()) {
    result.seconds = *left.seconds;
    result.threads = context_.threads();
  } else if (left.work) {
    result.effort = std::max(1e-6, static_cast<double>(*left.work) / kEffortWork);
  }
  result.stop = [this] { return stop(); };
  last_ = Clock::now();
  return result;
}

bool EngineRun::affords(std::size_t entries) {
  Limits& limits = context_.limits();
  if (clocked()) {
    const bool late = *limits.remaining().seconds < kEntrySeconds * static_cast<double>(entries);
    if (late) limits.stop_at_deadline();
    return !late;
  }
  return !limits.settings().work ||
         limits.work_left() >= kEntryWork * static_cast<std::int64_t>(entries);
}

void EngineRun::charge(const engines::EngineEnd& end) {
  Limits& limits = context_.limits();
  const bool finished = end.status == engines::EngineStatus::optimal ||
                        end.status == engines::EngineStatus::infeasible;
  if (clocked()) {
    stop();
    if (!finished && !end.stopped && end.failure.empty()) limits.stop_at_deadline();
    return;
  }
  if (!finished && limits.settings().work && end.failure.empty())
    limits.spend_all(limits.work_left());
  else
    limits.spend_all(static_cast<std::int64_t>(std::min(1e15, end.effort * kEffortWork)));
}

}  // namespace lowtide::solve::exact

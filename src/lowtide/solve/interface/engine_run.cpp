// With a time limit the result of an engine depends on the machine; without one it must not.
#include "lowtide/solve/interface/engine_run.h"

#include <algorithm>

namespace lowtide::solve {

bool EngineRun::stop() {
  if (!has_time_limit()) {
    const CancelToken* cancel = limits_.settings().cancel;
    if (cancel == nullptr || !cancel->cancelled()) return false;
    return limits_.spend(Limits::kPollWork);
  }
  const auto now = Clock::now();
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(now - last_).count();
  last_ = now;
  return limits_.spend(std::max<std::int64_t>(1, passed));
}

engines::EngineLimits EngineRun::limits() {
  engines::EngineLimits result;
  result.seed = seed_;
  const LimitSettings left = limits_.remaining();
  if (has_time_limit()) {
    result.seconds = *left.seconds;
    result.threads = threads_;
  } else if (left.work) {
    result.effort = std::max(1e-6, static_cast<double>(*left.work) / kEffortWork);
  }
  result.stop = [this] { return stop(); };
  last_ = Clock::now();
  return result;
}

bool EngineRun::affords(std::size_t entries) {
  if (has_time_limit()) {
    const bool late = *limits_.remaining().seconds < kEntrySeconds * static_cast<double>(entries);
    if (late) limits_.stop_at_deadline();
    return !late;
  }
  return !limits_.settings().work ||
         limits_.work_left() >= kEntryWork * static_cast<std::int64_t>(entries);
}

void EngineRun::charge(const engines::EngineEnd& end) {
  const bool finished = end.status == engines::EngineStatus::optimal ||
                        end.status == engines::EngineStatus::infeasible;
  if (has_time_limit()) {
    stop();
    if (!finished && !end.stopped && end.failure.empty()) limits_.stop_at_deadline();
    return;
  }
  if (!finished && limits_.settings().work && end.failure.empty())
    limits_.spend_all(limits_.work_left());
  else
    limits_.spend_all(static_cast<std::int64_t>(std::min(1e15, end.effort * kEffortWork)));
}

}  // namespace lowtide::solve

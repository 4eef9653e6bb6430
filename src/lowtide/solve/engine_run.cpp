// A clock makes what an engine finds depend on the machine; without one it must not.
#include "lowtide/solve/engine_run.h"

#include <algorithm>

namespace lowtide {

bool spend_all(Limits& limits, std::int64_t units) {
  for (; units > 0 && !limits.stopped(); units -= Limits::kPollWork)
    limits.spend(std::min(units, Limits::kPollWork));
  return limits.stopped();
}

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

EngineLimits EngineRun::limits() {
  EngineLimits result;
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

void EngineRun::charge(const EngineEnd& end) {
  Limits& limits = context_.limits();
  if (clocked()) {
    stop();
    return;
  }
  const bool finished =
      end.status == EngineStatus::optimal || end.status == EngineStatus::infeasible;
  if (!finished && limits.settings().work && end.failure.empty())
    spend_all(limits, limits.work_left());
  else
    spend_all(limits, static_cast<std::int64_t>(std::min(1e15, end.effort * kEffortWork)));
}

}  // namespace lowtide

// Polling: cheap until a limit is reached, and final after that.
#include "lowtide/base/limits.h"

#include <algorithm>

namespace lowtide {

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::finished: return "finished";
    case StopReason::gave_up: return "gave up";
    case StopReason::deadline: return "deadline";
    case StopReason::work_limit: return "work limit";
    case StopReason::cancelled: return "cancelled";
  }
  return "unknown";
}

Limits::Limits(const LimitSettings& settings) : settings_(settings), start_(Clock::now()) {
  if (settings.work) work_limit_ = std::max<std::int64_t>(0, *settings.work);
  next_poll_ = 0;
}

double Limits::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool Limits::over() const {
  return (settings_.cancel != nullptr && settings_.cancel->cancelled()) ||
         (settings_.seconds && seconds() >= *settings_.seconds) || interrupted();
}

// Limits that have ended stay ended.
bool Limits::interrupted() const {
  if (settings_.interrupter == nullptr) return false;
  if (!interrupted_ && settings_.interrupter->ends()) interrupted_ = true;
  return interrupted_;
}

double Limits::used() const {
  double used = 0;
  if (settings_.work)
    used = static_cast<double>(work_) / static_cast<double>(std::max<std::int64_t>(1, work_limit_));
  if (settings_.seconds) used = std::max(used, seconds() / std::max(1e-9, *settings_.seconds));
  return std::min(used, 1.0);
}

LimitSettings Limits::remaining(double share) const {
  LimitSettings rest = settings_;
  if (rest.seconds) rest.seconds = std::max(0.0, (*rest.seconds - seconds()) * share);
  if (rest.work) {
    const std::int64_t left = std::max<std::int64_t>(0, work_left());
    // Converting to double and back would change a large limit.
    rest.work = share >= 1 ? left : static_cast<std::int64_t>(static_cast<double>(left) * share);
  }
  if (interrupted_) rest.seconds = 0;
  return rest;
}

void Limits::poll() {
  ++polls_;
  next_poll_ = std::min(work_ + kPollWork, work_limit_);
  if (stopped_) return;
  if (settings_.cancel != nullptr && settings_.cancel->cancelled()) {
    stop(StopReason::cancelled);
  } else if (work_ >= work_limit_) {
    stop(StopReason::work_limit);
  } else if ((settings_.seconds && seconds() >= *settings_.seconds) || interrupted()) {
    stop(StopReason::deadline);
  }
}

void Limits::stop(StopReason reason) {
  stopped_ = true;
  reason_ = reason;
}

}  // namespace lowtide

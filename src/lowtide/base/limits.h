// When a solver must stop: at a deadline, at its work limit, or at a cancel. The work limit is
// checked before the deadline, so that a run with a work limit repeats exactly.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace lowtide {

// Set from any thread or from a signal handler; never cleared. A token with a parent, which must
// outlive it, is also cancelled when the parent is.
class CancelToken {
 public:
  CancelToken() = default;
  explicit CancelToken(const CancelToken* parent) : parent_(parent) {}

  void cancel() noexcept { flag_.store(true, std::memory_order_relaxed); }
  bool cancelled() const noexcept {
    return flag_.load(std::memory_order_relaxed) || (parent_ != nullptr && parent_->cancelled());
  }

 private:
  std::atomic<bool> flag_{false};
  const CancelToken* parent_ = nullptr;
  static_assert(std::atomic<bool>::is_always_lock_free);
};

// finished: the solver has done all it can. gave_up: it has nothing more to try, but no answer. The
// others are limits.
enum class StopReason { finished, gave_up, deadline, work_limit, cancelled };
std::string_view to_string(StopReason reason);
// Whether the solver ended without a limit, so that more time would change nothing.
constexpr bool by_itself(StopReason reason) {
  return reason == StopReason::finished || reason == StopReason::gave_up;
}

// For tests: ends limits at polls that it chooses, as a busy machine may exceed a deadline at any
// poll, of a solver or of a subsolver.
class Interrupter {
 public:
  virtual ~Interrupter() = default;
  // Called at each poll of limits that have not ended, from any thread. True: they end now.
  virtual bool ends() noexcept = 0;
};

struct LimitSettings {
  // Wall-clock time, from the construction of Limits.
  std::optional<double> seconds = std::nullopt;
  // Units of work; the page of each solver defines its unit.
  std::optional<std::int64_t> work = std::nullopt;
  const CancelToken* cancel = nullptr;
  // Also used by the limits of subsolvers.
  Interrupter* interrupter = nullptr;
};

// The limits of one solve. A solver calls `spend` for every unit of work (about a microsecond: an
// op computed, an item of a heap moved), and returns its best plan as soon as `spend` returns true.
// The clock is read every kPollWork units. Not shared between threads.
class Limits {
 public:
  using Clock = std::chrono::steady_clock;
  // A unit of work takes at most about 5 us, so the clock is read at least every 5 ms.
  static constexpr std::int64_t kPollWork = 1000;

  Limits() : Limits(LimitSettings{}) {}
  explicit Limits(const LimitSettings& settings);

  // Counts `units`, and returns whether to stop.
  bool spend(std::int64_t units = 1) {
    work_ += units;
    if (work_ >= next_poll_) poll();
    return stopped_;
  }
  // The same for any number of units, with polls in between.
  bool spend_all(std::int64_t units) {
    for (; units > 0 && !stopped_; units -= kPollWork) spend(std::min(units, kPollWork));
    return stopped_;
  }
  // For a solver that has waited for an engine, which keeps the deadline and ends just before it.
  void stop_at_deadline() {
    if (!stopped_) stop(StopReason::deadline);
  }
  bool stopped() const { return stopped_; }
  StopReason reason() const { return reason_; }
  std::int64_t work() const { return work_; }
  std::int64_t polls() const { return polls_; }
  std::int64_t work_left() const { return work_limit_ - work_; }
  double seconds() const;  // since construction
  // Whether the deadline has passed or the run is cancelled, whatever the work. For callers that
  // wait; it does not stop these limits, only a poll does.
  bool over() const;
  // The used share, from 0 to 1, of the work or of the seconds, whichever is larger; 0 without
  // limits. With a work limit alone it repeats exactly.
  double used() const;
  const LimitSettings& settings() const { return settings_; }

  // Limits for a subsolver: the share `share` of what is left. The caller charges the work of the
  // subsolver by `spend`.
  LimitSettings remaining(double share = 1.0) const;

 private:
  void poll();
  void stop(StopReason reason);
  bool interrupted() const;

  LimitSettings settings_;
  Clock::time_point start_;
  std::int64_t work_ = 0;
  std::int64_t work_limit_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t next_poll_ = 0;
  std::int64_t polls_ = 0;
  bool stopped_ = false;
  StopReason reason_ = StopReason::finished;
  // Several threads may call `over`.
  mutable std::atomic<bool> interrupted_{false};
};

}  // namespace lowtide

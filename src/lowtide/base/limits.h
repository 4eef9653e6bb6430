// When a solver must stop: at a deadline, when its work is used up, or when somebody cancels.
// Work is counted first and seconds second, so that a run with a work limit repeats exactly.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace lowtide {

// Set from any thread or from a signal handler; never cleared. One that has a parent, which must
// outlive it, is cancelled with it too.
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

// finished: all was done that there was to do. gave_up: it ended by itself too, with nothing more
// to try, and without the answer. The others are limits.
enum class StopReason { finished, gave_up, deadline, work_limit, cancelled };
std::string_view to_string(StopReason reason);
// More time would change nothing.
constexpr bool by_itself(StopReason reason) {
  return reason == StopReason::finished || reason == StopReason::gave_up;
}

// Ends limits at looks of its own choice, as the clock of a busy machine may end any of them, those
// of a part of the work as well as the whole. Tests draw such ends with it.
class Interrupter {
 public:
  virtual ~Interrupter() = default;
  // Asked at each look at limits that have not ended, from any thread: whether these end now.
  virtual bool ends() noexcept = 0;
};

struct LimitSettings {
  // Wall clock, from construction of Limits.
  std::optional<double> seconds = std::nullopt;
  // Units of work; each solver's page says what one is.
  std::optional<std::int64_t> work = std::nullopt;
  const CancelToken* cancel = nullptr;
  // Handed on to the limits of all parts.
  Interrupter* interrupter = nullptr;
};

// One for each solve. A solver calls `spend` for every unit of work it does (about a microsecond's
// worth: an op computed, an item of a heap moved) and returns its best plan as soon as it says
// stop. The clock is read every kPollWork units. Not shared between threads.
class Limits {
 public:
  using Clock = std::chrono::steady_clock;
  // A unit of work is at most about 5 us, so that a poll comes at least every 5 ms.
  static constexpr std::int64_t kPollWork = 1000;

  Limits() : Limits(LimitSettings{}) {}
  explicit Limits(const LimitSettings& settings);

  // Counts `units` and says whether to stop.
  bool spend(std::int64_t units = 1) {
    work_ += units;
    if (work_ >= next_poll_) poll();
    return stopped_;
  }
  // The same in parts between polls, however much it is.
  bool spend_all(std::int64_t units) {
    for (; units > 0 && !stopped_; units -= kPollWork) spend(std::min(units, kPollWork));
    return stopped_;
  }
  // For whoever has waited for something that keeps the deadline by itself, and ends just before.
  void stop_at_deadline() {
    if (!stopped_) stop(StopReason::deadline);
  }
  bool stopped() const { return stopped_; }
  StopReason reason() const { return reason_; }
  std::int64_t work() const { return work_; }
  std::int64_t polls() const { return polls_; }
  std::int64_t work_left() const { return work_limit_ - work_; }
  double seconds() const;  // since construction
  // Whether the deadline has passed or somebody has cancelled, by now and whatever the work: for
  // those who wait. A poll is what stops.
  bool over() const;
  // How much is used up, from 0 to 1: of the work or of the seconds, whichever is further; 0 if
  // neither is limited. With a limit of work alone it repeats exactly.
  double used() const;
  const LimitSettings& settings() const { return settings_; }

  // What is left of the limits, for a part of the work handed to another solver; `share` of it.
  // Work done under the part is charged back by `spend`.
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
  // `over` may be asked by several threads.
  mutable std::atomic<bool> interrupted_{false};
};

}  // namespace lowtide

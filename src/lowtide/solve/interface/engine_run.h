// One solver's use of an engine: the engine's limits are made of the solver's, and what it spent is
// charged to them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "lowtide/base/limits.h"
#include "lowtide/engines/find.h"

namespace lowtide::solve {

class EngineRun {
 public:
  EngineRun(Limits& limits, std::uint64_t seed, int threads)
      : limits_(limits), seed_(seed), threads_(threads) {}

  // Within the limits.
  engines::EngineState find(engines::EngineKind kind) {
    return engines::find_engine(kind, {}, [this] { return stop(); });
  }
  // For one solve. With a time limit, the time left, all threads, and a microsecond of work for
  // each that passes. Without, one thread and the effort that the work left stands for, so that it
  // repeats exactly.
  engines::EngineLimits limits();
  // Whether HiGHS may begin on a program with so many entries. Its presolve and first relaxation
  // know no limit but the clock, so without one the work left has to be that of a program so large.
  // With one, there must be time to send it; if there is not, that is the deadline.
  bool affords(std::size_t entries);
  // Charges what was spent; without a time limit, all that is left if the engine did not finish.
  void charge(const engines::EngineEnd& end);

  // Units of work for one of EngineLimits::effort.
  static constexpr double kEffortWork = 1e6;
  static constexpr std::int64_t kEntryWork = 100;  // of an entry, before a search begins
  static constexpr double kEntrySeconds = 1e-7;    // until an entry has been sent

 private:
  using Clock = std::chrono::steady_clock;
  bool stop();
  bool clocked() const { return limits_.settings().seconds.has_value(); }

  Limits& limits_;
  std::uint64_t seed_;
  int threads_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace lowtide::solve

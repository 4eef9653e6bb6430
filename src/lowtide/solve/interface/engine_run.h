// One solver's use of an engine: the engine's limits follow from the solver's, and the work of the
// engine is charged to them.
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
  // The limits of one solve. With a time limit: the time left, all threads, and a unit of work for
  // each microsecond. Without: one thread, and the effort that corresponds to the work left, so
  // that the run repeats exactly.
  engines::EngineLimits limits();
  // Whether HiGHS may begin with a program of so many entries. Its presolve and first relaxation
  // obey only a time limit. So without one, the work left must suffice for a program of that size.
  // With one, there must be time to send the program; otherwise the solver has reached its
  // deadline.
  bool affords(std::size_t entries);
  // Charges the work; without a time limit, all that is left if the engine did not finish.
  void charge(const engines::EngineEnd& end);

  // Units of work for one unit of EngineLimits::effort.
  static constexpr double kEffortWork = 1e6;
  static constexpr std::int64_t kEntryWork = 100;  // for an entry, before the search begins
  static constexpr double kEntrySeconds = 1e-7;    // to send an entry

 private:
  using Clock = std::chrono::steady_clock;
  bool stop();
  bool has_time_limit() const { return limits_.settings().seconds.has_value(); }

  Limits& limits_;
  std::uint64_t seed_;
  int threads_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace lowtide::solve

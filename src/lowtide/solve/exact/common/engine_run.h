// One solver's use of an engine: its limits are made of the context's, and what it spent is charged
// to the context.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "lowtide/engines/find.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::solve::exact {

class EngineRun {
 public:
  explicit EngineRun(Context& context) : context_(context) {}

  // Within the context's limits.
  engines::EngineState find(engines::EngineKind kind) {
    return engines::find_engine(kind, {}, [this] { return stop(); });
  }
  // For one solve. Under a clock, the time left, all threads, and a microsecond of work for each
  // that passes. Without, one thread and the effort that the work left stands for, so that it
  // repeats exactly.
  engines::EngineLimits limits();
  // Whether HiGHS may begin on a program with so many entries. Its presolve and first relaxation
  // know no limit but the clock, so without one the work left has to be that of a program so large.
  // With one, there must be time to send it; if there is not, that is the deadline.
  bool affords(std::size_t entries);
  // Charges what was spent; without a clock, all that is left if the engine did not finish.
  void charge(const engines::EngineEnd& end);

  // Units of work for one of EngineLimits::effort.
  static constexpr double kEffortWork = 1e6;
  static constexpr std::int64_t kEntryWork = 100;  // of an entry, before a search begins
  static constexpr double kEntrySeconds = 1e-7;    // until an entry has been sent

 private:
  using Clock = std::chrono::steady_clock;
  bool stop();
  bool clocked() const { return context_.limits().settings().seconds.has_value(); }

  Context& context_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace lowtide::solve::exact

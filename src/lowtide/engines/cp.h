// Solving a CpModel by CP-SAT, in a worker process.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lowtide/engines/cp_model.h"
#include "lowtide/engines/engine.h"

namespace lowtide::engines {

struct CpWatch {
  // Called with the values of all variables, better each time. Only now and then during a run,
  // since CP-SAT returns a solution only when it ends: the worker ends it, and continues from the
  // solution.
  std::function<void(std::span<const std::int64_t> values)> incumbent;
  // Called as soon as CP-SAT reports a bound.
  std::function<void(double objective)> objective;
  std::function<void(double bound)> bound;
};

struct CpAnswer {
  EngineEnd end;
  std::vector<std::int64_t> values;  // of the best solution; empty if there is none
};

// Returns within some milliseconds of `limits.stop`, and at most a second after the time limit.
// Values are not checked: the caller must check all that it can.
CpAnswer solve_cp(const CpModel& model, const EngineState& engine, const EngineLimits& limits,
                  const CpWatch& watch = {});

}  // namespace lowtide::engines

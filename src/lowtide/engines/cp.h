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
  // Values of all variables, better each time. Only now and then while it runs, since CP-SAT hands
  // over a solution only when it ends: the worker ends it, and goes on from the solution.
  std::function<void(std::span<const std::int64_t> values)> incumbent;
  // As soon as CP-SAT says so.
  std::function<void(double objective)> objective;
  std::function<void(double bound)> bound;
};

struct CpAnswer {
  EngineEnd end;
  std::vector<std::int64_t> values;  // of the best solution; empty if there is none
};

// Returns within some milliseconds of `limits.stop`, a second after the clock at the latest. Values
// are not looked into: whoever asks must not believe what it can check.
CpAnswer solve_cp(const CpModel& model, const EngineState& engine, const EngineLimits& limits,
                  const CpWatch& watch = {});

}  // namespace lowtide::engines

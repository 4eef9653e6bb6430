// The common interface of all engines: external solvers, found at run time or missing, each solve
// in a separate process. cp.h and mip.h have the models.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lowtide::engines {

enum class EngineKind : std::uint8_t { cpsat, highs };
std::string_view to_string(EngineKind kind);

// Paths; empty ones are searched.
struct EnginePaths {
  std::string library, worker;
};

// An engine on this machine.
struct EngineState {
  EnginePaths paths;
  std::string version;
  std::string missing;  // empty, or "CP-SAT: " and in one line why it cannot run, and the remedy
};

// The end of a solve.
enum class EngineStatus : std::uint8_t {
  optimal,     // of the model
  feasible,    // a solution
  infeasible,  // proven
  unknown,     // no solution
};

struct EngineLimits {
  std::optional<double> seconds;
  // Instead of a time limit, for runs that repeat exactly: CP-SAT's deterministic seconds, or
  // thousands of HiGHS's simplex iterations.
  std::optional<double> effort;
  // Of the worker, beyond its memory at the start; 0: four fifths of the free memory.
  std::int64_t memory_bytes = 0;
  int threads = 1;
  std::uint64_t seed = 0;
  // Polled at least every 10 ms; true ends the worker at once.
  std::function<bool()> stop;
};

// The result of a solve, without its values. `failure` describes any failure of the engine; earlier
// results still count.
struct EngineEnd {
  EngineStatus status = EngineStatus::unknown;
  std::optional<double> bound;  // of the objective, proven
  double effort = 0;            // spent, as in EngineLimits
  bool stopped = false;         // by `stop`
  std::string failure;          // "", or one sentence about a crash, a hang or an impossible result
};

}  // namespace lowtide::engines

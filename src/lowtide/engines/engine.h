// What is common to all engines: solvers of other people, found at run time or missing, each solve
// in a process of its own. cp.h and mip.h have what they are asked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lowtide::engines {

enum class EngineKind : std::uint8_t { cpsat, highs };
std::string_view to_string(EngineKind kind);

// Paths; whatever is empty is looked up.
struct EnginePaths {
  std::string library, worker;
};

// What there is of an engine on this machine.
struct EngineState {
  EnginePaths paths;
  std::string version;
  std::string missing;  // empty, or "CP-SAT: " and in one line why it cannot run and what helps
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
  // In place of a clock, for a run that repeats exactly: CP-SAT's deterministic seconds, or
  // thousands of HiGHS's simplex iterations.
  std::optional<double> effort;
  // Of the worker, beyond what it has at its start; 0: four fifths of what the machine has free.
  std::int64_t memory_bytes = 0;
  int threads = 1;
  std::uint64_t seed = 0;
  // Asked at least every 10 ms; true ends the worker at once.
  std::function<bool()> stop;
};

// What has come of a solve beside its values. Whatever happens to the engine is said in `failure`;
// what it had found before that still counts.
struct EngineEnd {
  EngineStatus status = EngineStatus::unknown;
  std::optional<double> bound;  // of the objective, proven
  double effort = 0;            // spent, as in EngineLimits
  bool stopped = false;         // by `stop`
  std::string failure;          // "", or in one sentence how it crashed, hung or made no sense
};

}  // namespace lowtide::engines

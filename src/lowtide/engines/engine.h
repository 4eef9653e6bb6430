// What is common to all engines: solvers of other people, found at run time or missing, each solve
// in a process of its own. cp.h and mip.h have what they are asked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lowtide {

enum class EngineKind : std::uint8_t { cpsat, highs };

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

std::string_view to_string(EngineKind kind);

// Looks for the library: `paths`, then LOWTIDE_CPSAT or LOWTIDE_HIGHS, then what was offered, then
// where pip puts it beside the program, then the plain name; and for the program that it runs in:
// `paths`, then LOWTIDE_WORKER, then what was offered, beside the program or library that this code
// is part of, then PATH. The worker opens the library and says its version, half a second the first
// time, five at most. What was found is remembered for as long as the paths stay the same, a
// failure for ten seconds. A look ends as soon as `stop` says so, with an engine that is missing.
// Any thread.
EngineState find_engine(EngineKind kind, const EnginePaths& paths = {},
                        const std::function<bool()>& stop = {});

// Where one may be, for whoever knows before it is looked for; the Python package does.
void offer_library(EngineKind kind, std::string path);
void offer_worker(std::string path);

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

}  // namespace lowtide

// The two files that a benchmark writes, line by line, so that what was measured survives an
// interrupt.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "bench/measure.h"

namespace lowtide::bench {

// What a run was asked.
struct Run {
  std::string set, graph, budget, solver, variant;
  const Problem* problem = nullptr;
  Bytes own_peak;
  std::uint64_t seed = 0;
  int threads = 1;
  std::optional<double> seconds = std::nullopt;  // the limits
  std::optional<std::int64_t> work = std::nullopt;
  std::string link = {};
};

class CsvFiles {
 public:
  // rows.csv and history.csv. Throws InputError if they cannot be written.
  explicit CsvFiles(const std::string& folder);
  void add(const Run& run, const Measurement& measured);

 private:
  std::ofstream rows_, history_;
};

}  // namespace lowtide::bench

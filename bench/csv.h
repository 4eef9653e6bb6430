// The two files that a benchmark writes, line by line, so that what was measured survives an
// interrupt.
#pragma once

#include <fstream>
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
  double limit = 0;  // seconds
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

// The results of a sweep as a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/report/plot.h"

namespace lowtide::report {

struct SweepLine {
  std::vector<std::string> given;  // a value for each setting
  std::string status;
  std::optional<std::int64_t> budget, peak;  // bytes
  std::optional<double> overhead, gap;       // per cent
  std::string reason;
};

// A row for each line, in their order. Of the settings, the first two have columns, and those whose
// values differ. The reasons of errors stand below the table, each once.
std::string sweep_text(const std::vector<std::string>& settings,
                       const std::vector<SweepLine>& lines, const TerminalStyle& style);

}  // namespace lowtide::report

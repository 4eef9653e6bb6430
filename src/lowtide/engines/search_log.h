// Parses the progress in CP-SAT's log, since its C interface reports nothing before the end.
#pragma once

#include <optional>
#include <string_view>

namespace lowtide::engines {

struct LogLine {
  std::optional<double> objective;  // of the solution in this line
  std::optional<double> bound;
};

// Parses "#3 0.52s best:17 next:[12,16] ..." and "#Bound 0.60s best:17 next:[13,16] ..."; nullopt
// for other lines.
LogLine read_log_line(std::string_view line);

}  // namespace lowtide::engines

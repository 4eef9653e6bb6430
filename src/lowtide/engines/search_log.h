// What CP-SAT's log says of its progress, since its C interface says nothing before the end.
#pragma once

#include <optional>
#include <string_view>

namespace lowtide::engines {

struct LogLine {
  std::optional<double> objective;  // of a solution that this line is about
  std::optional<double> bound;
};

// "#3 0.52s best:17 next:[12,16] ..." and "#Bound 0.60s best:17 next:[13,16] ..."; nothing of any
// other line.
LogLine read_log_line(std::string_view line);

}  // namespace lowtide::engines

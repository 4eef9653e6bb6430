// A table of regions that can be split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

struct RegionRow {
  std::size_t number = 0;
  std::string what, along;  // the reason for the region; the axis
  std::size_t ops = 0;
  std::int64_t parts = 0;
  Bytes peak;
  double share = 0;     // of the peak without the split, 0 to 1
  double overhead = 0;  // per cent
};

std::string regions_text(std::span<const RegionRow> rows, const TerminalStyle& style);

}  // namespace lowtide::report

// Memory over steps or time, drawn with characters.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/report/memory_profile.h"

namespace lowtide::report {

// The abilities of the terminal. No line of a drawing is wider than `width`.
struct TerminalStyle {
  std::size_t width = 80;   // columns; less than 40 counts as 40
  std::size_t height = 14;  // rows of the plot itself; less than 4 counts as 4
  bool colour = false;      // ANSI escape sequences
  bool unicode = true;      // UTF-8; otherwise nothing but ASCII
};

// Whether the environment (LC_ALL, LC_CTYPE, LANG) selects UTF-8.
bool utf8_locale();

// The activity of one lane over time, by stretch.
struct PlotLane {
  std::string_view name;
  std::vector<double> busy;  // share of each stretch, 0 to 1
  bool waits = false;        // idle time is drawn as waiting
};

// For a plot over time: the entries of `live` are stretches of equal length.
struct TimeAxis {
  Ticks duration;  // total of all stretches, of the longer run
  TickUnit tick = TickUnit::none;
  std::vector<PlotLane> lanes;  // of `run`, drawn below the axis
};

struct MemoryPlot {
  MemoryProfile run;                                   // drawn as an area
  std::optional<MemoryProfile> before = std::nullopt;  // drawn behind it
  std::optional<Bytes> budget = std::nullopt;          // drawn as a line, if it is not far above
  std::span<const std::size_t> recomputed = {};  // steps of `run`, ascending; drawn below the axis
  std::string_view run_name = "plan", before_name = "unplanned";
  std::optional<TimeAxis> time = std::nullopt;  // absent: over steps
};

// Lines that end in a newline. The vertical scale starts at 0. Each column shows the maximum of its
// steps, so that no peak is lost.
std::string plot_memory(const MemoryPlot& plot, const TerminalStyle& style);

// At most `count` indices into `values`, ascending: the first maximum of each of `count` equal
// stretches.
std::vector<std::size_t> sample_peaks(std::span<const Bytes> values, std::size_t count);

}  // namespace lowtide::report

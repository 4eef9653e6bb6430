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

// What the terminal can show. Nothing that is drawn for it is wider than `width`.
struct TerminalStyle {
  std::size_t width = 80;   // columns; less than 40 counts as 40
  std::size_t height = 14;  // rows of the plot itself; less than 4 counts as 4
  bool colour = false;      // ANSI escape sequences
  bool unicode = true;      // UTF-8; otherwise nothing but ASCII
};

// Whether the environment (LC_ALL, LC_CTYPE, LANG) asks for UTF-8.
bool utf8_locale();

// What one lane does over time, a stretch of it each.
struct PlotLane {
  std::string_view name;
  std::vector<double> busy;  // the part of each stretch, 0 to 1
  bool waits = false;        // what is not busy is drawn as waiting
};

// For a plot over time: entries of `live` are stretches of time, all as long.
struct TimeAxis {
  Ticks duration;  // of all stretches of the longer run
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

// Lines that end in a newline. The vertical scale starts at 0; each column shows the most that any
// of its steps uses, so that no peak is lost.
std::string plot_memory(const MemoryPlot& plot, const TerminalStyle& style);

// At most `count` indices into `values`, ascending: of equal stretches, the first largest of each.
std::vector<std::size_t> sample_peaks(std::span<const Bytes> values, std::size_t count);

}  // namespace lowtide::report

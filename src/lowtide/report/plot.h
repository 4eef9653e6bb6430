// Memory over steps, drawn with characters.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

struct MemoryPlot {
  MemoryProfile run;                                   // drawn as an area
  std::optional<MemoryProfile> before = std::nullopt;  // drawn behind it
  std::optional<Bytes> budget = std::nullopt;          // drawn as a line, if it is not far above
  std::span<const std::size_t> recomputed = {};  // steps of `run`, ascending; drawn below the axis
  std::string_view run_name = "plan", before_name = "own order";
};

// Lines that end in a newline. The vertical scale starts at 0; each column shows the most that any
// of its steps uses, so that no peak is lost.
std::string plot_memory(const MemoryPlot& plot, const TerminalStyle& style);

// At most `count` indices into `values`, ascending: of equal stretches, the first largest of each.
std::vector<std::size_t> sample_peaks(std::span<const Bytes> values, std::size_t count);

}  // namespace lowtide::report

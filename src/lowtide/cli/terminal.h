// Whether a descriptor is a terminal, and how wide it is.
#pragma once

#include <cstddef>

#include "lowtide/report/plot.h"

namespace lowtide::cli {

bool is_terminal(int descriptor);
// The columns of $COLUMNS or of the terminal's window, or 80.
std::size_t width_of(int descriptor);

// For text on standard output: the window's width or $COLUMNS or 80; colour on a terminal unless
// NO_COLOR is set; Unicode as the locale says.
report::TerminalStyle output_style();

}  // namespace lowtide::cli

// What stands at the other end: a terminal of some width, or a pipe.
#pragma once

#include "lowtide/io/plot.h"

namespace lowtide::cli {

bool is_terminal(int descriptor);

// For text on standard output: the window's width or $COLUMNS or 80; colour on a terminal unless
// NO_COLOR is set; Unicode as the locale says.
TerminalStyle output_style();

}  // namespace lowtide::cli

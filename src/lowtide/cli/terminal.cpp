#include "lowtide/cli/terminal.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <sys/ioctl.h>
#include <unistd.h>

namespace lowtide::cli {

bool is_terminal(int descriptor) { return isatty(descriptor) != 0; }

std::size_t width_of(int descriptor) {
  winsize window{};
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr && std::atoi(columns) > 0)
    return static_cast<std::size_t>(std::atoi(columns));
  if (ioctl(descriptor, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) return window.ws_col;
  return 80;
}

report::TerminalStyle output_style() {
  report::TerminalStyle style;
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0)
    style.height = std::clamp<std::size_t>(window.ws_row / 3, 8, 20);
  style.width = std::clamp<std::size_t>(width_of(STDOUT_FILENO), 40, 160);
  style.colour = is_terminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  style.unicode = report::utf8_locale();
  return style;
}

}  // namespace lowtide::cli

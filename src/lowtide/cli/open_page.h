// A page, in whatever shows pages on this machine.
#pragma once

#include <string>

namespace lowtide::cli {

// Starts the desktop's own program for pages, and does not wait for it. False where there is no
// desktop (no DISPLAY, no WAYLAND_DISPLAY) or no such program.
bool open_page(const std::string& path);

}  // namespace lowtide::cli

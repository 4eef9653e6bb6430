// Opens a page in the desktop's browser.
#pragma once

#include <string>

namespace lowtide::cli {

// Starts the desktop's program for pages without waiting for it. False if there is no desktop (no
// DISPLAY, no WAYLAND_DISPLAY) or no such program.
bool open_page(const std::string& path);

}  // namespace lowtide::cli

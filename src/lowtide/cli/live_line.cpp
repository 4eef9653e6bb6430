#include "lowtide/cli/live_line.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "lowtide/cli/terminal.h"

namespace lowtide::cli {

LiveLine::LiveLine(std::string text, bool show) : text_(std::move(text)) {
  if (show) thread_ = std::thread([this] { run(); });
}

LiveLine::~LiveLine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LiveLine::update(std::string text) {
  const std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

void LiveLine::run() {
  using namespace std::chrono_literals;
  const auto start = std::chrono::steady_clock::now();
  bool shown = false;
  std::unique_lock lock(mutex_);
  for (auto pause = 1000ms; !wake_.wait_for(lock, pause, [this] { return stop_; }); pause = 200ms) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    // A line that wraps would stay behind.
    const std::string line = fmt::format("{:6.1f} s   {}", passed.count(), text_);
    fmt::print(stderr, "\r\x1b[K{}", std::string_view(line).substr(0, width_of(STDERR_FILENO) - 1));
    std::fflush(stderr);
    shown = true;
  }
  if (shown) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace lowtide::cli

#include "lowtide/cli/live_line.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "lowtide/io/units_text.h"

namespace lowtide::cli {

LiveLine::LiveLine(const Problem& problem, bool show) : problem_(problem) {
  state_.bound = {problem.graph.total_time(), Bytes(0)};
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

void LiveLine::update(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  state_ = {progress.plan != nullptr, progress.cost, progress.bound};
}

std::string LiveLine::line(const State& state, double seconds) const {
  const Ticks base = problem_.graph.total_time();
  const std::string bound =
      fmt::format("bound {:.2f} %", overhead_percent(state.bound.duration, base));
  if (!state.has_plan)
    return fmt::format("{:6.1f} s   no plan within the budget yet   {}", seconds, bound);
  return fmt::format("{:6.1f} s   overhead {:.2f} %   {}   gap {:.2f} %   peak {}", seconds,
                     overhead_percent(state.cost.duration, base), bound,
                     gap_percent(state.cost.duration, state.bound.duration),
                     bytes_text(state.cost.peak));
}

void LiveLine::run() {
  using namespace std::chrono_literals;
  const auto start = std::chrono::steady_clock::now();
  bool shown = false;
  std::unique_lock lock(mutex_);
  for (auto pause = 1000ms; !wake_.wait_for(lock, pause, [this] { return stop_; }); pause = 200ms) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    fmt::print(stderr, "\r\x1b[K{}", line(state_, passed.count()));
    std::fflush(stderr);
    shown = true;
  }
  if (shown) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace lowtide::cli

#include "lowtide/cli/autosave.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::cli {

Autosave::Autosave(bool wanted) {
  if (wanted) thread_ = std::thread([this] { run(); });
}

Autosave::~Autosave() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Autosave::save(std::function<void()> write) {
  if (!wanted()) return;
  const std::lock_guard lock(mutex_);
  newer_ = std::move(write);
}

void Autosave::run() {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  constexpr Clock::duration kPause = 2s;
  constexpr int kShare = 10;  // of the time, one part for writing
  Clock::duration pause = kPause;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, pause, [this] { return stop_; })) {
    const auto write = std::exchange(newer_, {});
    if (!write) continue;
    lock.unlock();
    const auto start = Clock::now();
    try {
      write();
    } catch (const InputError&) {
      // The disk may have room again at the end; the search goes on.
    }
    pause = std::max(kPause, kShare * (Clock::now() - start));
    lock.lock();
  }
}

}  // namespace lowtide::cli

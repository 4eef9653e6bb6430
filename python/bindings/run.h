// Long work beside the interpreter: in a thread of its own, while the calling thread waits without
// the interpreter lock and looks after signals and progress.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include <nanobind/nanobind.h>

#include "lowtide/base/limits.h"

namespace lowtide::python {

namespace nb = nanobind;

// Runs `work`, which must end soon after `token` is cancelled. About every 20 ms, and once more
// after the end (`last`), the calling thread takes the lock, looks for signals and calls `tell`.
// The first KeyboardInterrupt cancels and is swallowed: whatever `work` has by then is the answer.
// A second one, and any other exception of `tell` or of a signal handler, cancels and is raised
// once `work` has ended. What `work` throws is thrown. Called with the lock held; `work` may take
// it for a while, which delays signals and `tell` only.
void run_beside(CancelToken& token, const std::function<void()>& work,
                const std::function<void(bool last)>& tell);

// The latest news from the solver's thread, handed to a Python callable at most every 50 ms.
template <class News>
class Courier {
 public:
  explicit Courier(nb::object callable) : callable_(std::move(callable)) {}

  bool wanted() const { return !callable_.is_none(); }
  void post(News news) {
    const std::lock_guard lock(mutex_);
    news_ = std::move(news);
  }
  // With the lock held. `last`: whatever is there, however soon.
  void deliver(bool last = false) {
    if (!wanted()) return;
    const auto now = std::chrono::steady_clock::now();
    if (!last && now < next_) return;
    std::optional<News> news;
    {
      const std::lock_guard lock(mutex_);
      std::swap(news, news_);
    }
    if (!news) return;
    next_ = now + std::chrono::milliseconds(50);
    callable_(std::move(*news));
  }

 private:
  nb::object callable_;
  std::mutex mutex_;
  std::optional<News> news_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace lowtide::python

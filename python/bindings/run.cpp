#include "run.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <thread>
#include <vector>

#include "objects.h"

namespace lowtide::python {

namespace {

// Whoever runs when the interpreter ends. A thread may not wait for the lock by then: it would be
// ended in the middle of our frames, which ends the process. So the interpreter's end waits.
class Running {
 public:
  void enter(CancelToken& token) {
    const std::lock_guard lock(mutex_);
    tokens_.push_back(&token);
    if (closing_) token.cancel();
  }
  void leave(CancelToken& token) {
    const std::lock_guard lock(mutex_);
    std::erase(tokens_, &token);
    left_.notify_all();
  }
  void close() {
    const nb::gil_scoped_release released;
    std::unique_lock lock(mutex_);
    closing_ = true;
    for (CancelToken* token : tokens_) token->cancel();
    left_.wait_for(lock, std::chrono::seconds(5), [&] { return tokens_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<CancelToken*> tokens_;
  bool closing_ = false;
};

Running& running() {
  static Running running;
  return running;
}

class Entered {
 public:
  explicit Entered(CancelToken& token) : token_(token) { running().enter(token); }
  ~Entered() { running().leave(token_); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  CancelToken& token_;
};

}  // namespace

void run_beside(CancelToken& token, const std::function<void()>& work,
                const std::function<void(bool last)>& tell) {
  const Entered entered(token);
  std::mutex mutex;
  std::condition_variable wake;
  bool ended = false, interrupted = false;
  std::exception_ptr failed, raised;
  std::thread worker([&] {
    try {
      work();
    } catch (...) {
      failed = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    ended = true;
    wake.notify_all();
  });
  for (bool last = false; !last;) {
    {
      const nb::gil_scoped_release released;
      std::unique_lock lock(mutex);
      last = wake.wait_for(lock, std::chrono::milliseconds(20), [&] { return ended; });
    }
    if (raised) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!last || !failed) tell(last);
    } catch (nb::python_error& error) {
      if (error.matches(PyExc_KeyboardInterrupt) && !interrupted)
        interrupted = true;
      else
        raised = std::current_exception();
    } catch (...) {
      raised = std::current_exception();
    }
    if (interrupted || raised) token.cancel();
  }
  worker.join();
  if (raised) std::rethrow_exception(raised);
  if (failed) std::rethrow_exception(failed);
}

void bind_run(nb::module_&) {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { running().close(); }));
}

}  // namespace lowtide::python

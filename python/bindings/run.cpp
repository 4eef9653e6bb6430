#include "run.h"

#include <condition_variable>
#include <exception>
#include <thread>

namespace lowtide::python {

void run_beside(CancelToken& token, const std::function<void()>& work,
                const std::function<void(bool last)>& tell) {
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

}  // namespace lowtide::python

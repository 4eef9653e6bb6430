// The best so far on disk while a search runs, so that even a killed run leaves it behind.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lowtide::cli {

// Writes two seconds after the start and then at most every two seconds, less often where writing
// takes long. A short run writes nothing here: it writes once, at its end.
class Autosave {
 public:
  // Not `wanted`: nothing is ever written.
  explicit Autosave(bool wanted);
  // Waits for what is being written; leaves the rest to the end of the run.
  ~Autosave();
  Autosave(const Autosave&) = delete;
  Autosave& operator=(const Autosave&) = delete;

  bool wanted() const { return thread_.joinable(); }
  // There is something better than on disk, and this writes it: once, on the autosave's thread, or
  // never if something newer comes first. From any thread. An InputError (a full disk) is dropped.
  void save(std::function<void()> write);

 private:
  void run();

  std::function<void()> newer_;  // than what is on disk
  bool stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace lowtide::cli

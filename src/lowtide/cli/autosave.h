// Keeps the best result so far on disk during a search, so that a killed run leaves it behind.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lowtide::cli {

// Writes two seconds after the start, then at most every two seconds, and less often if writing
// takes long. During a shorter run it writes nothing: the run writes once, at its end.
class Autosave {
 public:
  // If not `wanted`, nothing is ever written.
  explicit Autosave(bool wanted);
  // Waits for a write in progress; the run itself writes the final result.
  ~Autosave();
  Autosave(const Autosave&) = delete;
  Autosave& operator=(const Autosave&) = delete;

  bool wanted() const { return thread_.joinable(); }
  // There is a better result than on disk, and `write` writes it: called once, on the autosave's
  // thread, or never if a newer result comes first. May be called from any thread. An InputError (a
  // full disk) is dropped.
  void save(std::function<void()> write);

 private:
  void run();

  std::function<void()> newer_;  // writes a result newer than the one on disk
  bool stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace lowtide::cli

// The progress line during a search: on a terminal, from the first second on.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lowtide::cli {

class LiveLine {
 public:
  // Shows `text` after the elapsed seconds. `show` is false on a pipe: then nothing is ever
  // printed.
  LiveLine(std::string text, bool show);
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Called on the solver's thread.
  void update(std::string text);

 private:
  void run();

  std::string text_;
  bool stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace lowtide::cli

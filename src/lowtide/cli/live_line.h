// The line that moves while a solver works: on a terminal, from the first second on.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "lowtide/plan/problem.h"
#include "lowtide/solve/context.h"

namespace lowtide::cli {

class LiveLine {
 public:
  // `show` is false on a pipe: then nothing is ever printed.
  LiveLine(const Problem& problem, bool show);
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // From the solver's thread.
  void update(const Progress& progress);

 private:
  struct State {
    bool has_plan = false;
    Cost cost;
    Bound bound;
  };
  void run();
  std::string line(const State& state, double seconds) const;

  const Problem& problem_;
  State state_;
  bool stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace lowtide::cli

// The best plan so far on disk while a solver works, so that even a killed run leaves it behind.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "lowtide/cli/plan_output.h"
#include "lowtide/solve/context.h"

namespace lowtide::cli {

// Writes two seconds after the start and then at most every two seconds, if there is a better plan
// than on disk. A short run writes nothing here: it writes once, at its end.
class PlanKeeper {
 public:
  PlanKeeper(const PlanOutput& output, const Request& request);
  ~PlanKeeper();
  PlanKeeper(const PlanKeeper&) = delete;
  PlanKeeper& operator=(const PlanKeeper&) = delete;

  // From the solver's thread.
  void update(const Progress& progress);

 private:
  void run();

  const PlanOutput& output_;
  const Request& request_;
  std::optional<Outcome> newer_;  // than what is on disk
  bool stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace lowtide::cli

#include "lowtide/cli/plan_keeper.h"

#include <chrono>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::cli {

PlanKeeper::PlanKeeper(const PlanOutput& output, const Request& request)
    : output_(output), request_(request) {
  if (!output.path().empty() && output.path() != "-") thread_ = std::thread([this] { run(); });
}

PlanKeeper::~PlanKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PlanKeeper::update(const Progress& progress) {
  if (progress.plan == nullptr || !thread_.joinable()) return;
  Outcome outcome;
  outcome.status = Status::feasible;
  outcome.plan = *progress.plan;
  outcome.cost = progress.cost;
  outcome.bound = progress.bound;
  outcome.found_by = progress.solver;
  outcome.note = "written while the search was running";
  const std::lock_guard lock(mutex_);
  newer_ = std::move(outcome);
}

void PlanKeeper::run() {
  using namespace std::chrono_literals;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, 2s, [this] { return stop_; })) {
    const auto outcome = std::exchange(newer_, std::nullopt);
    if (!outcome) continue;
    lock.unlock();
    try {
      output_.write(*outcome, request_);
    } catch (const InputError&) {
      // The disk may have room again at the end; the search goes on.
    }
    lock.lock();
  }
}

}  // namespace lowtide::cli

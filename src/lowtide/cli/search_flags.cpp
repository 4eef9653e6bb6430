#include "lowtide/cli/search_flags.h"

#include <algorithm>
#include <thread>

#include <CLI/CLI.hpp>

namespace lowtide::cli {

LimitSettings SearchFlags::limits(const CancelToken& cancel) const {
  constexpr double kDefaultSeconds = 10;
  LimitSettings limits{.seconds = time, .work = work, .cancel = &cancel};
  // A work limit alone means no clock, so that the run repeats exactly.
  if (!time && !work) limits.seconds = kDefaultSeconds;
  return limits;
}

int SearchFlags::thread_count() const {
  if (threads > 0) return threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void add_search_flags(CLI::App& command, SearchFlags& flags) {
  command.add_option("--time", flags.time, "Stop after so many seconds (10, or none with --work)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--work", flags.work, "Stop after so much work: the same result on every machine")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--order", flags.order, "Keep the graph's order or choose one")
      ->check(CLI::IsMember({"free", "given"}))
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "Seed of all that is random")->capture_default_str();
  command.add_option("--threads", flags.threads, "Threads to use (all cores)")
      ->check(CLI::Range(1, 4096));
}

}  // namespace lowtide::cli

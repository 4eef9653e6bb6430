// The settings of the solves for a trade-off curve or a smallest budget.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/plan.h"

namespace lowtide::driver {

struct SweepSettings {
  std::string solver = "auto";
  std::vector<std::pair<std::string, std::string>> options = {};  // of the solver, by name
  LimitSettings limits;  // of all solves together: seconds of wall-clock time, sum of work
  std::uint64_t seed = 0;
  int threads = 1;  // divided among the solves of a round: one each, or more if there are few
  // Called with plans that are better than the known ones, while the solves of a round find them:
  // on their threads, several at a time. These plans are not verified yet.
  std::function<void(const Plan&, const Cost&, std::string_view found_by)> finds = {};
};

}  // namespace lowtide::driver

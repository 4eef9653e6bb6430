// How the solves of a trade-off curve, or of a smallest budget, are run.
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
  std::vector<std::pair<std::string, std::string>> options = {};  // of it, by name
  LimitSettings limits;  // of all solves together: the clock's seconds, the sum of their work
  std::uint64_t seed = 0;
  int threads = 1;  // shared out among the solves of a round: one each, more if these are few
  // Sees plans that are better than those known, as the solves of a round come by them: on their
  // threads, several at a time. Nothing has verified them yet.
  std::function<void(const Plan&, const Cost&, std::string_view found_by)> finds = {};
};

}  // namespace lowtide::driver

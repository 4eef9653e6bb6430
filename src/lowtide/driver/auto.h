// The portfolio: what `plan` runs unless another solver is named. See auto.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

std::unique_ptr<solve::Solver> make_auto();

// Options of `search` in one of many short runs: the runs differ in how hot they begin, and, where
// the order is free, in whether they search the order alone first. `brief`: so few proposals for
// each op that there is no time to cool down.
std::vector<std::pair<std::string, std::string>> search_options(std::uint64_t turn, bool brief);

}  // namespace lowtide::driver

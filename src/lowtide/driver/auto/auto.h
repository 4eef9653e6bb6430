// The solver `auto`, the default of the command `plan`. See auto.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

std::unique_ptr<solve::Solver> make_auto();

}  // namespace lowtide::driver

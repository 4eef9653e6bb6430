// The solver `auto`: what `plan` runs unless another one is named. See auto.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

std::unique_ptr<solve::Solver> make_auto();

}  // namespace lowtide::driver

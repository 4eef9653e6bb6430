// The portfolio: what `plan` runs unless another solver is named. See auto.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/solver.h"

namespace lowtide {

std::unique_ptr<Solver> make_auto();

}  // namespace lowtide

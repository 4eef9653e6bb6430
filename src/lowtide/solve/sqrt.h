// Chen's segments between cut tensors: keep about every sqrt(n)-th, recompute the rest. See sqrt.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/solver.h"

namespace lowtide {

std::unique_ptr<Solver> make_sqrt();

}  // namespace lowtide

// The tree-width solver of Kumar et al.; see twremat.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide {

std::unique_ptr<Solver> make_twremat();

}  // namespace lowtide

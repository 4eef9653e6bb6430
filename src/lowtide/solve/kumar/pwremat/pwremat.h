// The path-width solver of Kumar et al.; see pwremat.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::kumar::pwremat {

std::unique_ptr<Solver> make_pwremat();

}  // namespace lowtide::solve::kumar::pwremat

// The tree-width solver of Kumar et al.; see twremat.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::kumar::twremat {

std::unique_ptr<Solver> make_twremat();

}  // namespace lowtide::solve::kumar::twremat

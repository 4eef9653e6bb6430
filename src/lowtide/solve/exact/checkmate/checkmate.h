// Checkmate: the integer program over stages, and its LP relaxation with two-stage rounding, solved
// by HiGHS. Graphs of some hundred ops without a machine, both orders; least time only. A unit of
// work is a thousandth of a simplex iteration, or with a time limit a microsecond. See
// checkmate.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::exact::checkmate {

std::unique_ptr<Solver> make_checkmate();

}  // namespace lowtide::solve::exact::checkmate

// Moccasin: retention intervals and constraint programming, solved by CP-SAT. Any graph without a
// machine, both orders; least time only. A unit of work is a millionth of CP-SAT's deterministic
// second, or with a time limit a microsecond. See moccasin.cpp and docs/why/moccasin.md.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::exact::moccasin {

std::unique_ptr<Solver> make_moccasin();

}  // namespace lowtide::solve::exact::moccasin

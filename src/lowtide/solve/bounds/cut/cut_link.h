// What the links are worth at one cut point. Private to the solver; see cut_link.cpp.
#pragma once

#include "lowtide/solve/bounds/cut/cut_search.h"

namespace lowtide::solve::bounds {

// The bound at the best shares that were found, at which the search is left; `hint` is where to
// begin. For problems with a machine.
CutFound maximise_shares(CutSearch& search, const LinkShares& hint, const CutScale& scale,
                         const CutAim& aim);

}  // namespace lowtide::solve::bounds

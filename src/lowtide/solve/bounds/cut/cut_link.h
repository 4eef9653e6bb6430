// The multipliers of the links' capacity at one cut point. Private to the solver; see cut_link.cpp.
#pragma once

#include "lowtide/solve/bounds/cut/cut_search.h"

namespace lowtide::solve::bounds {

// Maximizes the bound over the shares, starting from `hint`. Leaves the search at the best shares
// found. For problems with a machine.
CutFound maximise_shares(CutSearch& search, const LinkShares& hint, const CutScale& scale,
                         const CutAim& aim);

}  // namespace lowtide::solve::bounds

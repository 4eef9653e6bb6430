// The search for the smallest budget for an overhead, with transforms. See fit_race.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/sweep.h"

namespace lowtide::driver {

// Runs until this share of the sweep's remaining limits is used, or nothing is left to try. If
// transforms are not allowed, the original graph goes down alone. `told` is called after every
// round.
void race(Sweep& sweep, Ticks time_limit, double share, const std::function<void()>& told);

}  // namespace lowtide::driver

// The smallest budget for some overhead, where transforms are looked for. See fit_race.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/sweep.h"

namespace lowtide::driver {

// Until the limits of the sweep end, or there is nothing left to try. `told` is called after every
// round.
void race(Sweep& sweep, Ticks time_limit, const std::function<void()>& told);

}  // namespace lowtide::driver

// The smallest budget for some overhead, where transforms are looked for. See fit_race.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/sweep.h"

namespace lowtide::driver {

// Until so much of what is left of the sweep's limits is used up, or there is nothing left to try.
// Where no transforms may be used, the graph as it is goes down alone. `told` is called after every
// round.
void race(Sweep& sweep, Ticks time_limit, double share, const std::function<void()>& told);

}  // namespace lowtide::driver

// Moves collectives of a plan so that more of them runs beside the computing. Private to the room.
#pragma once

#include "lowtide/base/limits.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/problem.h"

namespace lowtide::driver {

// The plan with its network ops issued earlier, and with the ops that wait for them later, as far
// as the peak stays within `limit`; or the plan itself if none of that makes it shorter. The same
// plan gives the same result on all ranks. The plan must be legal, and without transforms. A unit
// of work is a step that an op is moved past. At the limits the result is what has been moved so
// far.
Plan overlapped(const Problem& problem, const Plan& plan, Bytes limit, Limits& limits);

}  // namespace lowtide::driver

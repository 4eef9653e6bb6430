// The least useful amount of work for a solve. Private to the room.
#pragma once

namespace lowtide::driver {

// The units of work that a solve of a graph of so many ops needs at least: with less not even a
// constructive solver finishes.
constexpr double least_solve(double ops) { return 5'000 + 60 * ops; }

}  // namespace lowtide::driver

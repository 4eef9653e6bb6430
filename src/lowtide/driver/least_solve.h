// How little work is too little. Private to the room.
#pragma once

namespace lowtide::driver {

// Units of work with which a solve of so many ops says something: with less not even what is
// constructed comes to an end.
constexpr double least_solve(double ops) { return 5'000 + 60 * ops; }

}  // namespace lowtide::driver

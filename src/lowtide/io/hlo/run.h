// What a computation that control runs (the body of a while, a branch, what is called) costs its
// caller. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/base/units.h"

namespace lowtide::io::hlo {

inline constexpr std::int64_t kComputed = -1;

struct Run {
  Bytes temporaries;  // the most bytes beside its parameters and results
  std::int64_t ns = 0, operations = 0;
  // For each leaf of the result: the leaf of the parameters that it is, unchanged, counted over all
  // parameters; or kComputed.
  std::vector<std::int64_t> passes;
};

}  // namespace lowtide::io::hlo

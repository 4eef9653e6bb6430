// Words for what becomes of tensors and for why ops stop.
#include "lowtide/ops/dimensions/reach.h"

#include <array>
#include <cstddef>

namespace lowtide::dimensions {

std::string_view to_string(State state) {
  constexpr std::array<std::string_view, 3> kNames = {"whole", "split", "partial"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view to_string(StopCause cause) {
  constexpr std::array<std::string_view, 5> kNames = {"mixes", "unknown", "conflict", "misplaced",
                                                      "sum"};
  return kNames[static_cast<std::size_t>(cause)];
}

}  // namespace lowtide::dimensions

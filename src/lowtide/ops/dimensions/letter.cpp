#include "lowtide/ops/dimensions/letter.h"

#include <algorithm>
#include <array>

namespace lowtide::dimensions {

bool Letter::reduces() const {
  for (std::size_t r = 0; r < unnamed.size(); ++r)
    if (unnamed[r] == Unnamed::sum && std::ranges::find(results, r, &Along::item) == results.end())
      return true;
  return false;
}

std::string_view to_string(Weight weight) {
  constexpr std::array<std::string_view, 3> kNames = {"one", "share", "total"};
  return kNames[static_cast<std::size_t>(weight)];
}

}  // namespace lowtide::dimensions

// The message for an index that does not exist in a graph. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

inline bool in_range(std::int64_t index, std::size_t count) {
  return index >= 0 && static_cast<std::size_t>(index) < count;
}

// `what`: "op" or "tensor". `count`: their number.
inline std::string no_such(std::string_view what, std::int64_t index, std::size_t count) {
  return "there is no " + std::string(what) + " " + std::to_string(index) +
         (count == 0 ? "; there is none" : "; indices run from 0 to " + std::to_string(count - 1));
}

}  // namespace lowtide

// The number types of HLO. Private to the room.
#pragma once

#include <string_view>

namespace lowtide::io::hlo {

struct NumberType {
  std::string_view name;   // in HLO: "s32"
  std::string_view dtype;  // in graphs: "i32"
  int bits;                // 0: tokens and opaque values, which take no memory
};

// Null for an unknown name.
const NumberType* find_number_type(std::string_view name);

}  // namespace lowtide::io::hlo

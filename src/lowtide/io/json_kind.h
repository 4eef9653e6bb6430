// The kinds of JSON values.
#pragma once

#include <cstdint>
#include <string_view>

namespace lowtide::io {

enum class JsonKind : std::uint8_t { null, boolean, integer, number, string, array, object };
// "a string", "an object", ...: for messages.
std::string_view to_string(JsonKind kind);

}  // namespace lowtide::io

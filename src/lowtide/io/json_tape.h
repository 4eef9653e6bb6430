// How a JsonDocument lies in memory. Private to the room: json_build.cpp writes it, json.cpp reads
// it.
//
// One token for each value in the order of the text, and one for each key before its value. A token
// knows the token after the whole of its value, so that a reader steps over what it does not want.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lowtide/io/json_kind.h"

namespace lowtide::io {

struct JsonToken {
  // Of an integer or boolean: itself. Of an array or object: its size. Of a string or another
  // number: 2^32 x its offset in JsonTape::characters + its length. Of a key: its index in `keys`.
  std::int64_t value = 0;
  std::uint32_t next = 0;  // 0 while an array or object is still open
  JsonKind kind = JsonKind::null;
};

struct JsonTape {
  std::vector<JsonToken> tokens;
  std::string characters;
  // Keys repeat in every op, so each is kept once.
  std::unordered_map<std::string, std::uint32_t> key_index;
  std::vector<const std::string*> keys;  // into key_index

  std::string_view characters_of(const JsonToken& token) const {
    const auto packed = static_cast<std::uint64_t>(token.value);
    return std::string_view(characters).substr(packed >> 32, packed & 0xffffffffu);
  }
  const std::string& key_of(const JsonToken& token) const {
    return *keys[static_cast<std::size_t>(token.value)];
  }
};

// Where token `at` stands; parts longer than a line are shortened.
std::string json_pointer(const JsonTape& tape, std::uint32_t at);

// Why a document is refused that is nested too deep.
std::string too_deep();

}  // namespace lowtide::io

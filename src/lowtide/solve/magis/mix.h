// 64-bit hashes that are combined from others. Private to `magis`.
#pragma once

#include <cstdint>
#include <string_view>

namespace lowtide::solve::magis {

// The finalizer of splitmix64, over both arguments.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t mix(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = mix(hash, static_cast<std::uint8_t>(c));
  return hash;
}

}  // namespace lowtide::solve::magis

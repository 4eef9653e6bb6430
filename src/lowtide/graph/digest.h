// A 128-bit hash of a stream of numbers and texts. Fast, and safe against accidental collisions,
// but not against an adversary. Private to the room.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lowtide {

struct Digest {
  std::uint64_t a = 0, b = 0;

  auto operator<=>(const Digest&) const = default;
  // A sum of digests is the digest of a multiset.
  Digest& operator+=(const Digest& other) {
    a += other.a;
    b += other.b;
    return *this;
  }
};

struct DigestHash {
  std::size_t operator()(const Digest& digest) const noexcept { return digest.a; }
};

class Digester {
 public:
  Digester() = default;
  // Continues the stream that ended with `digest`.
  explicit Digester(const Digest& digest) : a_(digest.a), b_(digest.b) {}

  Digester& add(std::uint64_t value) {
    a_ = mixed(a_ ^ value, 0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u);
    b_ = mixed(b_ + value * 0x9e3779b97f4a7c15u + 1, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu);
    return *this;
  }
  Digester& add(const Digest& digest) { return add(digest.a).add(digest.b); }
  Digester& add(std::string_view text) {
    add(text.size());
    for (std::size_t i = 0; i < text.size(); i += 8) {
      std::uint64_t word = 0;
      for (std::size_t k = i; k < text.size() && k < i + 8; ++k)
        word = word << 8 | static_cast<unsigned char>(text[k]);
      add(word);
    }
    return *this;
  }
  template <class List>
  Digester& add_all(const List& numbers) {
    add(numbers.size());
    for (const auto number : numbers) add(static_cast<std::uint64_t>(number));
    return *this;
  }

  Digest get() const { return {a_, b_}; }

 private:
  static std::uint64_t mixed(std::uint64_t z, std::uint64_t first, std::uint64_t second) {
    z = (z ^ (z >> 32)) * first;
    z = (z ^ (z >> 29)) * second;
    return z ^ (z >> 32);
  }

  std::uint64_t a_ = 0x243f6a8885a308d3u, b_ = 0x13198a2e03707344u;
};

}  // namespace lowtide

// SHA-256 of a stream of 64-bit integers (FIPS 180-4). Implemented here, so that the core needs no
// library for one hash.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace lowtide {

class Sha256 {
 public:
  // Appends the eight bytes of `value`, least significant first.
  void add(std::int64_t value);
  void add_byte(std::uint8_t byte);
  // Ends the stream, and returns 64 lower-case hexadecimal digits.
  std::string hex();

 private:
  void compress();

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;  // bytes
};

}  // namespace lowtide

#include "lowtide/base/sha256.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace lowtide {

namespace {

std::string sha256(std::string_view text) {
  Sha256 sha;
  for (char c : text) sha.add_byte(static_cast<std::uint8_t>(c));
  return sha.hex();
}

}  // namespace

TEST_CASE("sha256: the example values of FIPS 180-4") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
               "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu") ==
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  CHECK(sha256(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256: lengths at which the padding needs another block") {
  CHECK(sha256(std::string(55, 'a')) ==
        "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(sha256(std::string(56, 'a')) ==
        "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  CHECK(sha256(std::string(63, 'a')) ==
        "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  CHECK(sha256(std::string(64, 'a')) ==
        "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST_CASE("sha256: an integer is eight bytes, the least significant first") {
  Sha256 numbers, bytes;
  numbers.add(0x0102030405060708);
  numbers.add(-1);
  for (int byte : {8, 7, 6, 5, 4, 3, 2, 1}) bytes.add_byte(static_cast<std::uint8_t>(byte));
  for (int i = 0; i < 8; ++i) bytes.add_byte(0xff);
  CHECK(numbers.hex() == bytes.hex());
}

}  // namespace lowtide

#include "lowtide/base/error.h"

#include <string>

#include <doctest/doctest.h>

namespace lowtide {

TEST_CASE("errors: file, place and reason, as far as they are known") {
  const InputError error("/ops/3", "negative time");
  CHECK(std::string(error.what()) == "/ops/3: negative time");
  CHECK(error.place() == "/ops/3");
  CHECK(error.reason() == "negative time");
  CHECK(error.file().empty());
  const InputError known = error.in_file("a.json");
  CHECK(std::string(known.what()) == "a.json: /ops/3: negative time");
  CHECK(known.file() == "a.json");
  CHECK(std::string(InputError("", "too large", "a.json").what()) == "a.json: too large");
  CHECK(std::string(InputError("", "").what()).empty());
}

TEST_CASE("errors: a failed check names its place in the source") {
  CHECK_NOTHROW(check(true, "never seen"));
  try {
    check(false, "one is two");
    FAIL("a check that fails must throw");
  } catch (const InternalError& error) {
    const std::string text = error.what();
    CHECK(text.find("broken invariant: one is two") == 0);
    CHECK(text.find("error_test.cpp:") != std::string::npos);
  }
}

}  // namespace lowtide

// Links as people write them, and what is wrong with those that are refused.
#include "lowtide/device/link.h"

#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"

namespace lowtide {
namespace {

TEST_CASE("link: bytes a second and a latency, read exactly") {
  CHECK(parse_link("25GB/s,10us") == LinkSpeed{25'000'000'000, 10'000});
  CHECK(parse_link("25GB/s") == LinkSpeed{25'000'000'000, 0});
  CHECK(parse_link(" 12.5 GB/s , 5 us ") == LinkSpeed{12'500'000'000, 5'000});
  CHECK(parse_link("1b/s,0ns") == LinkSpeed{1, 0});
  CHECK(parse_link("1.5KiB/s,1.5ms") == LinkSpeed{1536, 1'500'000});
  CHECK(parse_link("0.001TB/s,0.1ns") == LinkSpeed{1'000'000'000, 1});  // rounded up
}

TEST_CASE("link: what is refused says what is wrong and what would be right") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CAPTURE(text);
    try {
      parse_link(text);
      FAIL("taken");
    } catch (const InputError& error) {
      const std::string what = error.what();
      CAPTURE(what);
      CHECK(error.place() == "link \"" + text + "\"");
      CHECK(what.find(why) != std::string::npos);
      CHECK(what.find("25GB/s,10us") != std::string::npos);
    }
  };
  refused("25", "unit of \"25\"");
  refused("", "does not say bytes a second");
  refused("fast", "does not say bytes a second");
  refused(",10us", "does not say bytes a second");
  refused("0GB/s", "moves less than one byte");
  refused("-1GB/s", "is negative");
  refused("25GB/s,", "nothing after the comma");
  refused("25GB/s,-1us", "is negative");
  refused("25GB/s,10", "unit of \"10\"");
  refused("25GB/s,10us,5us", "which is not known");
  refused("10us", "bytes a second in the unit \"us\"");
  refused("10us,25GB/s", "bytes a second in the unit \"us\"");
  refused("25Gbit/s", "unit \"gbit/s\"");
  refused("25GB", "unit \"gb\"");
  refused("nanGB/s", "does not say bytes a second");
  refused("1e3GB/s", "unit \"e3gb/s\"");
  refused("1.2.3GB/s", "unit \".3gb/s\"");
  refused("0.3B/s", "no whole number of bytes");
  refused("99999999999GB/s", "beyond 63 bits");
  refused("99999999999999999999GB/s", "too many digits");
  refused("1GB/s,99999999999s", "beyond 63 bits");
}

}  // namespace
}  // namespace lowtide

// Prices to the ns, as they were computed by hand or by the formula's first version in Python.
#include "lowtide/device/roofline.h"

#include <limits>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"

namespace lowtide {
namespace {

const Device& card(std::string_view name) {
  const Device* found = find_built_in_device(name);
  REQUIRE(found != nullptr);
  return *found;
}

TEST_CASE("roofline: launch time plus the larger of compute and memory time") {
  const Device& a100 = card("a100");
  CHECK(kernel_ns(a100, 0, "f32", 0) == 2000);
  CHECK(kernel_ns(a100, 312'000'000'000, "bf16", 0) == 2000 + 1'666'667);
  CHECK(kernel_ns(a100, 1, "bf16", 2'039'000'000) == 2000 + 1'250'000);
  CHECK(kernel_ns(a100, 312'000'000'000, "bf16", 2'039'000'000) == 2000 + 1'666'667);
  CHECK(kernel_ns(a100, 1, "f32", 0) == 2001);  // rounded up
}

TEST_CASE("roofline: a number type without a rate counts as f32") {
  const Device& a100 = card("a100");
  CHECK(kernel_ns(a100, 1'000'000'000, "i64", 0) == kernel_ns(a100, 1'000'000'000, "f32", 0));
  CHECK(kernel_ns(a100, 1'000'000'000, "f64", 0) > kernel_ns(a100, 1'000'000'000, "f32", 0));
  CHECK(kernel_ns(card("v100"), 1'000'000'000, "tf32", 0) ==
        kernel_ns(card("v100"), 1'000'000'000, "f32", 0));
}

TEST_CASE("roofline: devices without a rate for a number type use that of f32") {
  CHECK(kernel_ns(card("p100"), 9'300'000'000, "f16", 0) == 2000 + 1'666'667);
  CHECK(kernel_ns(card("p100"), 0, "f32", 732'000'000) == 2000 + 1'250'000);
  CHECK(kernel_ns(card("rtx8000"), 16'300'000'000, "tf32", 0) == 2000 + 1'666'667);
  CHECK(kernel_ns(card("rtx8000"), 130'500'000'000, "f16", 0) == 2000 + 1'666'667);
}

TEST_CASE("roofline: a collective takes the peer link, and there must be one") {
  CHECK(collective_ns(card("h100"), 0) == 20'000);
  CHECK(collective_ns(card("a100"), 300'000'000) == 20'000 + 1'000'000);
  Device lonely = card("a100");
  lonely.peer_link.reset();
  CHECK_THROWS_WITH_AS(collective_ns(lonely, 1), doctest::Contains("has no link to other devices"),
                       InputError);
}

TEST_CASE("roofline: a price beyond 63 bits is refused") {
  Device slow = card("a100");
  slow.rates = {{"f32", 1}};
  slow.bytes_per_second = 1;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(kernel_ns(slow, kMost, "f32", 0), OverflowError);
  CHECK_THROWS_AS(kernel_ns(slow, 0, "f32", kMost), OverflowError);
  slow.launch_ns = kMost;
  CHECK_THROWS_AS(kernel_ns(slow, 1, "f32", 0), OverflowError);
}

TEST_CASE("devices: names in alphabetical order, every figure in its range") {
  std::string_view before;
  for (const Device& device : built_in_devices()) {
    CAPTURE(device.name);
    CHECK(before < device.name);
    before = device.name;
    CHECK(find_built_in_device(device.name) == &device);
    CHECK_FALSE(device.title.empty());
    CHECK(device.rate("f32") > 0);
    CHECK(device.rate("f16") <= 2'000'000'000'000'000);
    CHECK(device.bytes_per_second >= 10'000'000'000);
    CHECK(device.launch_ns > 0);
    CHECK(device.memory >= Bytes(0));
  }
  CHECK(find_built_in_device("A100") == nullptr);
}

}  // namespace
}  // namespace lowtide

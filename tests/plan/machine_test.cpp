// Links in ticks: exact fractions, latencies rounded up.
#include "lowtide/plan/machine.h"

#include <doctest/doctest.h>

#include "lowtide/base/error.h"

namespace lowtide {
namespace {

TEST_CASE("machine: bytes a second are an exact fraction of the tick") {
  const LinkSpeed link{25'000'000'000, 10'000}, odd{12'500'000'000, 1};
  CHECK(machine_of(link, TickUnit::ns).device_to_host == Link{Ticks(10'000), Bytes(25), Ticks(1)});
  CHECK(machine_of(link, TickUnit::us).host_to_device == Link{Ticks(10), Bytes(25'000), Ticks(1)});
  CHECK(machine_of(odd, TickUnit::ns).host_to_device == Link{Ticks(1), Bytes(25), Ticks(2)});
  CHECK(machine_of(odd, TickUnit::ms).device_to_host ==
        Link{Ticks(1), Bytes(12'500'000), Ticks(1)});
  const LinkSpeed prime{1'000'000'007, 0};
  CHECK(machine_of(prime, TickUnit::ns).device_to_host ==
        Link{Ticks(0), Bytes(1'000'000'007), Ticks(1'000'000'000)});
  CHECK(machine_of(link, TickUnit::ns).device_to_host.transfer_time(Bytes(26)) == Ticks(10'002));
}

TEST_CASE("machine: a share of the bandwidth is reserved, exactly") {
  const Machine full = machine_of({25'000'000'000, 10'000}, TickUnit::ns);
  CHECK(derated(full, {1, 10}).device_to_host == Link{Ticks(10'000), Bytes(45), Ticks(2)});
  CHECK(derated(full, {10, 100}) == derated(full, {1, 10}));
  CHECK(derated(full, {0, 7}) == full);
  const Machine third{{Ticks(3), Bytes(30), Ticks(4)}, {Ticks(0), Bytes(1), Ticks(0)}};
  CHECK(derated(third, {1, 3}) ==
        Machine{{Ticks(3), Bytes(5), Ticks(1)}, {Ticks(0), Bytes(1), Ticks(0)}});
  // Large numbers are cancelled before they are multiplied.
  constexpr std::int64_t kHuge = 9'000'000'000'000'000'000;
  const Machine huge{{Ticks(0), Bytes(kHuge), Ticks(kHuge - 1)},
                     {Ticks(0), Bytes(kHuge), Ticks(9)}};
  CHECK(derated(huge, {kHuge - 9, kHuge}).host_to_device == Link{Ticks(0), Bytes(1), Ticks(1)});
  CHECK_THROWS_AS(derated(huge, {1, 7}), OverflowError);
}

TEST_CASE("machine: ticks that are no times are refused") {
  for (const TickUnit tick : {TickUnit::flop, TickUnit::none})
    CHECK_THROWS_WITH_AS(machine_of({1, 0}, tick), doctest::Contains("price the graph in ns first"),
                         InputError);
}

}  // namespace
}  // namespace lowtide

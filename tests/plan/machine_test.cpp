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

TEST_CASE("machine: ticks that are no times are refused") {
  for (const TickUnit tick : {TickUnit::flop, TickUnit::none})
    CHECK_THROWS_WITH_AS(machine_of({1, 0}, tick), doctest::Contains("price the graph in ns first"),
                         InputError);
}

}  // namespace
}  // namespace lowtide

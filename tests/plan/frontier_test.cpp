// Two staircases, by hand.
#include "lowtide/plan/frontier.h"

#include <doctest/doctest.h>

#include "support/print.h"

namespace lowtide {
namespace {

Frontier::Entry entry(std::int64_t peak, std::int64_t duration) {
  return {{Ticks(duration), Bytes(peak), Bytes(0)}, std::make_shared<const Plan>(), "a solver"};
}

TEST_CASE("frontier: keeps the Pareto-optimal points") {
  Frontier known;
  CHECK(known.best(Bytes(100)) == nullptr);
  CHECK(known.add(entry(50, 10)));
  CHECK_FALSE(known.add(entry(50, 10)));
  CHECK_FALSE(known.add(entry(60, 10)));
  CHECK(known.add(entry(80, 5)));
  CHECK(known.add(entry(60, 7)));
  CHECK(known.entries().size() == 3);
  CHECK(known.best(Bytes(49)) == nullptr);
  CHECK(known.best(Bytes(79))->cost.duration == Ticks(7));
  CHECK(known.above(Bytes(60))->cost.peak == Bytes(80));
  CHECK(known.above(Bytes(80)) == nullptr);
  CHECK(known.smallest()->cost.peak == Bytes(50));
  CHECK(known.smallest(Ticks(9))->cost.peak == Bytes(60));
  CHECK(known.smallest(Ticks(4)) == nullptr);
  CHECK(known.add(entry(40, 5)));
  CHECK(known.entries().size() == 1);
}

TEST_CASE("frontier: a bound for a budget holds for every smaller budget") {
  Frontier known;
  CHECK(known.bound(Bytes(10)) == Ticks(0));
  known.raise_bound(Bytes(100), Ticks(3));
  known.raise_bound(Bytes(50), Ticks(8));
  known.raise_bound(Bytes(60), Ticks(2));  // says less than is known
  CHECK(known.bound(Bytes(20)) == Ticks(8));
  CHECK(known.bound(Bytes(51)) == Ticks(3));
  CHECK(known.bound(Bytes(101)) == Ticks(0));
  CHECK(known.floor(Ticks(7)) == Bytes(51));
  CHECK(known.floor(Ticks(8)) == Bytes(0));
  known.raise_bound(Bytes(70), Ticks(9));
  CHECK(known.bound(Bytes(20)) == Ticks(9));
  known.raise_floor(Bytes(30));
  CHECK(known.floor() == Bytes(30));
  CHECK(known.decided(Bytes(29)));
  CHECK_FALSE(known.decided(Bytes(70)));
  known.add(entry(70, 9));
  CHECK(known.decided(Bytes(70)));
}

}  // namespace
}  // namespace lowtide

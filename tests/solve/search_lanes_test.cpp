// The lanes alone, by hand; what states make of them is held against sim in search_state_test.cpp.
#include <doctest/doctest.h>

#include "lowtide/solve/local/common/state/lanes.h"

namespace lowtide::solve::local {
namespace {

using Kind = Lanes::Kind;

void fill(Lanes& lanes, std::size_t block, const std::vector<Lanes::Stop>& stops, double time) {
  lanes.refill(block) = stops;
  lanes.filled(block, time);
}

// Two ops of 10 in a block each. A copy of 15 out behind the first, freed behind the second; back
// in 7, needed by a third op of 5.
struct Run {
  Run() {
    lanes.need_clocks(2);
    lanes.reset(3);
    fill(lanes, 0, {{10, 15, 0, Kind::copy}}, 10);
    fill(lanes, 1, {{10, 0, 0, Kind::wait_after}}, 10);
    fill(lanes, 2, {{0, 7, 1, Kind::fetch}, {0, 0, 1, Kind::wait_before}}, 5);
  }
  Lanes lanes;
};

TEST_CASE("search lanes: a free waits for the copy out, an op for the copy in") {
  Run run;
  CHECK(run.lanes.evaluate() == 25 + 7 + 5);
  CHECK(run.lanes.end_of(0) == 25);
  CHECK(run.lanes.end_of(1) == 32);
  CHECK(run.lanes.begin_of(2) == 25);
  CHECK(run.lanes.block_at(24) == 1);
  CHECK(run.lanes.block_at(26) == 2);
}

TEST_CASE("search lanes: an earlier fetch is hidden, and the duration is that of the last lane") {
  Run run;
  run.lanes.evaluate();
  run.lanes.mark(1);
  run.lanes.mark(2);
  CHECK(run.lanes.stale_from(0) == 1);
  fill(run.lanes, 1, {{3, 7, 1, Kind::fetch}}, 10);
  fill(run.lanes, 2, {{0, 0, 1, Kind::wait_before}}, 1);
  CHECK(run.lanes.evaluate() == 25);  // the copy out
  CHECK(run.lanes.begin_of(2) == 20);
  CHECK(run.lanes.in().size() == 1);
  CHECK(run.lanes.out().front().begin == 10);
}

TEST_CASE("search lanes: a barrier waits for copies, and copies behind it for the barrier") {
  Run run;
  run.lanes.mark(1);
  fill(run.lanes, 1, {{0, 10, 0, Kind::barrier}}, 10);
  CHECK(run.lanes.evaluate() == 35 + 7 + 5);
  CHECK(run.lanes.in().front().begin == 35);
}

TEST_CASE("search lanes: incremental pricing equals pricing from the start") {
  Run run, again;
  const double whole = run.lanes.evaluate();
  again.lanes.evaluate();
  again.lanes.mark(2);
  fill(again.lanes, 2, {}, 5);
  CHECK(again.lanes.evaluate() == 25 + 5);
  CHECK(again.lanes.in().empty());
  again.lanes.mark(2);
  fill(again.lanes, 2, {{0, 7, 1, Kind::fetch}, {0, 0, 1, Kind::wait_before}}, 5);
  CHECK(again.lanes.evaluate() == whole);
}

}  // namespace
}  // namespace lowtide::solve::local

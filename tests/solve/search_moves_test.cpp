// Each move alone: whatever it does, the state holds, the plan is legal, and a refusal leaves no
// trace.
#include <doctest/doctest.h>

#include "lowtide/solve/search/moves.h"

#include "solve/search_fixture.h"
#include "support/scale.h"

namespace lowtide::search {
namespace {

template <class Prepare, class Move>
void sweep(Prepare prepare, Move move) {
  int done = 0;
  for (int i = 0; i < samples(120); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    Fixture fixture(random);
    Moves moves(fixture.network, fixture.state, random);
    moves.price = random.uniform() * 10;
    moves.temperature = random.chance(0.5) ? 1 : 100;
    for (int round = 0; round < 40; ++round) {
      CAPTURE(round);
      prepare(fixture, moves);
      fixture.state.commit();
      const Snapshot before(fixture.state);
      const bool proposed = move(fixture, moves);
      CHECK(proposed == fixture.state.changed());
      done += proposed;
      if (!proposed) continue;
      fixture.check_all();
      if (random.chance(0.5)) {
        fixture.state.undo();
        CHECK(Snapshot(fixture.state) == before);
        fixture.check_all();
      } else {
        fixture.state.commit();
      }
    }
  }
  CHECK(done > samples(100));
}

Slot any_slot(const Fixture& fixture, Moves& moves) {
  const Slot over = moves.any_overload();
  if (over >= 0 && moves.random.chance(0.7)) return over;
  return static_cast<Slot>(
      moves.random.below(static_cast<std::size_t>(fixture.state.slot_count())));
}

void nothing(Fixture&, Moves&) {}

void some_repeat(Fixture& fixture, Moves& moves) {
  if (fixture.state.repeat_count() == 0) moves.drop_gap(any_slot(fixture, moves));
}

TEST_CASE("search moves: drop a gap") {
  sweep(nothing,
        [](Fixture& fixture, Moves& moves) { return moves.drop_gap(any_slot(fixture, moves)); });
}

TEST_CASE("search moves: remove a repeated computation") {
  sweep(some_repeat, [](Fixture&, Moves& moves) { return moves.remove_repeat(); });
}

TEST_CASE("search moves: exchange") {
  sweep(some_repeat,
        [](Fixture&, Moves& moves) { return moves.exchange(moves.random.chance(0.5)); });
}

TEST_CASE("search moves: shift a computation") {
  sweep(some_repeat, [](Fixture& fixture, Moves& moves) {
    const auto slots = static_cast<std::size_t>(fixture.state.slot_count());
    Item item = fixture.state.item_from(static_cast<Slot>(moves.random.below(slots)));
    if (fixture.problem.order == Order::given) item = moves.any_repeat();
    return item != kNone && moves.shift(item);
  });
}

TEST_CASE("search moves: an overload is a step above the budget") {
  for (int i = 0; i < samples(100); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    Fixture fixture(random);
    Moves moves(fixture.network, fixture.state, random);
    const Slot slot = moves.any_overload();
    CHECK((slot >= 0) == !fixture.state.within());
    if (slot < 0) continue;
    CHECK(fixture.state.item_at(slot) != kNone);
    CHECK(fixture.state.profile().at(slot) > fixture.network.budget);
  }
}

}  // namespace
}  // namespace lowtide::search

// Each move alone: whatever it does, the state holds, the plan is legal, and a refusal leaves no
// trace.
#include <algorithm>

#include <doctest/doctest.h>

#include "lowtide/solve/local/common/moves/moves.h"

#include "solve/search_fixture.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide::solve::local {
namespace {

template <class Prepare, class Move>
void sweep(Prepare prepare, Move move, bool transfers) {
  int done = 0;
  for (int i = 0; i < samples(120); ++i) {
    CAPTURE(i);
    CAPTURE(transfers);
    Random random(static_cast<std::uint64_t>(i));
    Fixture fixture(random, transfers);
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
      fixture.state.settle();
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

template <class Prepare, class Move>
void sweep(Prepare prepare, Move move) {
  sweep(prepare, move, false);
  sweep(prepare, move, true);
}

// A graph's own order, for moves that are made by hand.
struct ByHand {
  explicit ByHand(const Problem& problem) : network(problem) {
    state.load(events_from(problem.graph.order()));
  }

  Network network;
  State state{network};
  Random random{1};
  Moves moves{network, state, random};
};

Slot any_slot(const Fixture& fixture, Moves& moves) {
  const Slot over = moves.any_overload();
  if (over.valid() && moves.random.chance(0.7)) return over;
  return Slot(moves.random.below(fixture.state.slot_count()));
}

void nothing(Fixture&, Moves&) {}

void some_repeat(Fixture& fixture, Moves& moves) {
  if (fixture.state.repeat_count() == 0) moves.drop_gap(any_slot(fixture, moves));
}

TEST_CASE("search moves: drop a gap") {
  sweep(nothing,
        [](Fixture& fixture, Moves& moves) { return moves.drop_gap(any_slot(fixture, moves)); });
}

TEST_CASE("search moves: swap a gap") {
  sweep(
      nothing,
      [](Fixture& fixture, Moves& moves) {
        const Snapshot before(fixture.state);
        const bool proposed = moves.swap_gap(any_slot(fixture, moves));
        // All that it made superfluous may be what it put in.
        if (!proposed) CHECK(Snapshot(fixture.state) == before);
        return proposed;
      },
      true);
}

TEST_CASE("search moves: shift a fetch or a hold") {
  sweep(
      [](Fixture& fixture, Moves& moves) {
        if (fixture.state.fetch_time() == 0) moves.swap_gap(any_slot(fixture, moves));
      },
      [](Fixture& fixture, Moves& moves) {
        const Item item = moves.any_later();
        if (item == kNone || fixture.network.is_op(fixture.state.node(item))) return false;
        return moves.shift_transfer(item);
      },
      true);
}

TEST_CASE("search moves: remove a repeated computation") {
  sweep(some_repeat, [](Fixture&, Moves& moves) { return moves.remove_repeat(); });
}

TEST_CASE("search moves: exchange") {
  sweep(some_repeat,
        [](Fixture&, Moves& moves) { return moves.exchange(moves.random.chance(0.5)); });
}

TEST_CASE("search moves: hand over a place on the link") {
  sweep(
      [](Fixture& fixture, Moves& moves) {
        some_repeat(fixture, moves);
        if (fixture.state.fetch_time() == 0) moves.swap_gap(any_slot(fixture, moves));
      },
      [](Fixture&, Moves& moves) { return moves.hand_over(); }, true);
}

TEST_CASE("search moves: shift a computation") {
  sweep(some_repeat, [](Fixture& fixture, Moves& moves) {
    const std::size_t slots = fixture.state.slot_count();
    Item item = fixture.state.item_from(Slot(moves.random.below(slots)));
    if (fixture.problem.order == Order::given) item = moves.any_repeat();
    return item != kNone && fixture.network.is_op(fixture.state.node(item)) && moves.shift(item);
  });
}

TEST_CASE("search moves: push a computation, and what is in its way") {
  sweep(some_repeat, [](Fixture& fixture, Moves& moves) {
    moves.shift_first = fixture.problem.order == Order::free;
    const std::size_t slots = fixture.state.slot_count();
    const Item item = fixture.state.item_from(Slot(moves.random.below(slots)));
    return item != kNone && moves.push(item);
  });
}

// The tensors 0 to 2 are a chain, 3 to 6 stand alone; all are read at the end.
TEST_CASE("search moves: a push moves blocking ops along, which a shift cannot") {
  const Graph graph = Sketch({1, 1, 1, 1, 1, 1, 1, 1})
                          .op({}, {0})
                          .op({0}, {1})
                          .op({1}, {2})
                          .op({}, {3})
                          .op({}, {4})
                          .op({}, {5})
                          .op({}, {6})
                          .op({2, 3, 4, 5, 6}, {7})
                          .keep({7})
                          .graph();
  const Problem problem{.graph = graph, .budget = Bytes(8), .order = Order::free};
  ByHand made(problem);
  auto& [network, state, random, moves] = made;
  const auto chain_is_whole = [&] {
    return state.slot(Item(0)) < state.slot(Item(1)) && state.slot(Item(1)) < state.slot(Item(2));
  };
  CHECK_FALSE(moves.push(Item(0)));  // a given order
  moves.shift_first = true;
  bool passed = false;
  for (int i = 0; i < 200 && !passed; ++i) {
    moves.push(Item(0));
    REQUIRE(chain_is_whole());
    passed = state.slot(Item(0)) > state.slot(Item(3));
    state.undo();
  }
  CHECK(passed);
  // And to the left.
  const std::vector<OpId> late = {OpId(3), OpId(4), OpId(5), OpId(6),
                                  OpId(0), OpId(1), OpId(2), OpId(7)};
  state.load(events_from(late));
  passed = false;
  for (int i = 0; i < 200 && !passed; ++i) {
    moves.push(Item(2));
    REQUIRE(chain_is_whole());
    passed = state.slot(Item(2)) < state.slot(Item(6));
    state.undo();
  }
  CHECK(passed);
  moves.switches.push = false;
  CHECK_FALSE(moves.push(Item(2)));
}

TEST_CASE("search moves: holds of one tensor keep their order among themselves") {
  const Graph graph = Sketch({4, 1, 1, 1, 1})
                          .op({}, {0})
                          .op({}, {1})
                          .op({}, {2})
                          .op({}, {3})
                          .op({0, 1, 2, 3}, {4})
                          .keep({4})
                          .graph();
  const Problem problem{.graph = graph, .budget = Bytes(8), .machine = machine_by_hand()};
  ByHand made(problem);
  auto& [network, state, random, moves] = made;
  const Node hold = network.hold(network.value_for(TensorId(0)));
  const Item first = state.insert(hold, Item(1)), second = state.insert(hold, Item(3));
  state.commit();
  int moved = 0;
  for (int i = 0; i < 200; ++i) {
    moved += moves.shift_transfer(i % 2 == 0 ? first : second) ? 1 : 0;
    if (state.present(first) && state.present(second))
      REQUIRE(state.slot(first) < state.slot(second));
    state.undo();
  }
  CHECK(moved > 50);
}

// Neither tensor 0 nor tensor 1 may be there while op 3 runs. The link has time for the copy of one
// of them until then; what is swapped is the larger one, which is cheap to make again.
TEST_CASE("search moves: on a full link only a hand-over improves the plan") {
  const Graph graph = Sketch({200, 100, 1, 300, 1, 1, 1, 1})
                          .op({}, {0}, 10)
                          .op({}, {1}, 40)
                          .op({}, {2}, 65)
                          .op({2}, {3}, 100)
                          .op({3}, {4}, 100)
                          .op({4}, {5}, 100)
                          .op({5, 1}, {6}, 100)
                          .op({6, 0}, {7}, 100)
                          .keep({7})
                          .graph();
  const Problem problem{.graph = graph, .budget = Bytes(305), .machine = machine_by_hand()};
  ByHand made(problem);
  auto& [network, state, random, moves] = made;
  const Value large = network.value_for(TensorId(0));
  state.insert(network.hold(large), Item(3));
  state.insert(network.fetch(large), Item(6));
  state.insert(Network::node_of(OpId(1)), Item(6));
  state.settle();
  state.commit();
  REQUIRE(state.within());
  REQUIRE(state.duration() == 615 + 40);

  const auto best_of = [&](auto move) {
    double best = state.duration();
    for (int i = 0; i < 2000; ++i) {
      moves.temperature = i % 2 == 0 ? 1 : 100;
      move();
      state.settle();
      if (state.within()) best = std::min(best, state.duration());
      state.undo();
    }
    return best;
  };
  const auto any_slot = [&] { return Slot(random.below(state.slot_count())); };
  CHECK(best_of([&] { moves.exchange(random.chance(0.5)); }) == 655);
  CHECK(best_of([&] { moves.remove_repeat(); }) == 655);
  CHECK(best_of([&] { moves.relieve(any_slot()); }) == 655);
  CHECK(best_of([&] {
          const Item item = moves.any_later();
          network.is_op(state.node(item)) ? moves.shift(item) : moves.shift_transfer(item);
        }) == 655);
  CHECK(best_of([&] { moves.hand_over(); }) == 615 + 10);
  for (bool* off : {&moves.switches.swap, &moves.switches.recompute}) {
    *off = false;
    for (int tries = 0; tries < 50; ++tries) CHECK_FALSE(moves.hand_over());
    *off = true;
  }
}

TEST_CASE("search moves: an overload is a step above the budget") {
  for (int i = 0; i < samples(100); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    Fixture fixture(random);
    Moves moves(fixture.network, fixture.state, random);
    const Slot slot = moves.any_overload();
    CHECK(slot.valid() == !fixture.state.within());
    if (!slot.valid()) continue;
    CHECK(fixture.state.item_at(slot) != kNone);
    CHECK(fixture.state.profile().at(slot) > fixture.network.budget);
  }
}

TEST_CASE("search moves: at the break-even price holding costs as much as recomputation") {
  int seen = 0;
  for (int i = 0; i < samples(800); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    Fixture fixture(random);
    State& state = fixture.state;
    if (fixture.network.has_overwrites()) continue;
    Moves moves(fixture.network, state, random);
    moves.temperature = 100;
    for (int drops = 0; drops < 10; ++drops) moves.drop_gap(any_slot(fixture, moves));
    state.commit();
    const Item item = moves.any_repeat();
    // Two outputs together can be more over the budget than each by itself.
    if (item == kNone || fixture.network.output_count(state.node(item)) != 1) continue;
    const double price = moves.even_price(item);
    const auto energy = [&] { return state.duration() + price * state.profile().over(); };
    const double before = energy();
    state.remove(item);
    // Its inputs and its workspace are not looked at, and can only be a gain.
    CHECK(energy() <= before * (1 + 1e-9));
    seen += price > 0;
  }
  CHECK(seen > samples(20));
}

}  // namespace
}  // namespace lowtide::solve::local

// Random changes of random states: everything stays a function of the sequence, and undo is exact.
#include <algorithm>

#include <doctest/doctest.h>

#include "lowtide/solve/local/common/moves/moves.h"
#include "lowtide/solve/local/common/state/state.h"

#include "solve/search_fixture.h"
#include "support/scale.h"

namespace lowtide::solve::local {
namespace {

// Whether a computation of the op may stand there; drawn without looking, so mostly it may not.
bool may_stand(const Fixture& fixture, Node node, Item before) {
  const State& state = fixture.state;
  const Network& network = fixture.network;
  if (before == kNone) return false;
  if (network.is_fetch(node) || network.is_hold(node)) {
    const Value value = network.value_of(node);
    const Item maker = State::first_of(network.maker(value));
    if (state.slot(before) <= state.slot(maker)) return false;
    return network.is_fetch(node) || !network.is_away(value) ||
           !state.is_first(state.server(value, state.slot(before)));
  }
  if (!fixture.network.is_op(node) || !fixture.network.may_repeat(node)) return false;
  if (state.slot(before) <= state.slot(State::first_of(node))) return false;
  const auto ends = fixture.network.ends(node);
  return std::all_of(ends.begin(), ends.end(), [&](Node end) {
    return state.slot(before) <= state.slot(State::first_of(end));
  });
}

void change(Random& random, Fixture& fixture) {
  State& state = fixture.state;
  const auto any_item = [&] { return state.item_from(Slot(random.below(state.slot_count()))); };
  switch (random.below(3)) {
    case 0: {
      const Node node(random.below(fixture.network.node_count()));
      const Item before = any_item();
      if (may_stand(fixture, node, before)) state.insert(node, before);
      break;
    }
    case 1:
      if (state.repeat_count() > 0) {
        const Item item = state.repeat(random.below(state.repeat_count()));
        if (Moves(fixture.network, state, random).may_remove(item)) state.remove(item);
      }
      break;
    default: {
      Moves moves(fixture.network, state, random);
      const Item item = any_item();
      if (item == kNone || (state.is_first(item) && fixture.problem.order == Order::given)) break;
      const Node node = fixture.network.is_op(state.node(item)) ? state.node(item) : Node();
      if (node.valid())
        moves.shift(item);
      else if (!state.is_first(item))
        moves.shift_transfer(item);
    }
  }
}

TEST_CASE("search state: random changes, committed or undone") {
  for (int i = 0; i < samples(150); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    Fixture fixture(random, i % 2 == 1);
    fixture.check_all();
    for (int round = 0; round < 25; ++round) {
      CAPTURE(round);
      const Snapshot before(fixture.state);
      for (std::size_t changes = random.below(6); changes > 0; --changes) change(random, fixture);
      if (random.chance(0.3)) {
        fixture.state.settle();
        fixture.check_all();
      }
      if (random.chance(0.5)) {
        fixture.state.undo();
        CHECK(Snapshot(fixture.state) == before);
      } else {
        fixture.state.commit();
      }
      CHECK_FALSE(fixture.state.changed());
      fixture.check_all();
    }
  }
}

TEST_CASE("search state: slots run out and are redistributed") {
  Random random(3);
  Fixture fixture(random);
  State& state = fixture.state;
  Node node(0);
  while (!fixture.network.may_repeat(node) || !fixture.network.ends(node).empty())
    node = Node(node.index() + 1);
  REQUIRE(fixture.network.is_op(node));
  const std::size_t slots = state.slot_count();
  const Snapshot before(state);
  for (int i = 0; i < 2000; ++i) state.insert(node, State::first_of(fixture.network.sink()));
  CHECK(state.slot_count() > slots);
  fixture.check_all();
  state.undo();
  CHECK(Snapshot(state) == before);
  fixture.check_all();
}

TEST_CASE("search state: a sequence comes back as it was loaded") {
  for (int i = 0; i < samples(50); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i) + 1000);
    Fixture fixture(random, i % 2 == 1);
    for (int changes = 0; changes < 20; ++changes) change(random, fixture);
    fixture.state.settle();
    const Snapshot before(fixture.state);
    fixture.state.load(before.sequence);
    CHECK(Snapshot(fixture.state) == before);
  }
}

}  // namespace
}  // namespace lowtide::solve::local

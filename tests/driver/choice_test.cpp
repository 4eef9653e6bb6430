// The bandit of `auto`.
#include "lowtide/driver/auto/choice.h"

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

namespace lowtide {
namespace {

using driver::Choice;

bool any(std::size_t) { return true; }

std::vector<int> counts(Choice& choice, int draws, std::size_t arms) {
  std::vector<int> found(arms);
  for (int i = 0; i < draws; ++i) ++found[choice.next(any)];
  return found;
}

TEST_CASE("choice: draws follow the weights, evenly spread") {
  Choice choice({2, 1, 1, 0});
  CHECK(counts(choice, 4, 4) == std::vector{2, 1, 1, 0});
  CHECK(counts(choice, 40, 4) == std::vector{20, 10, 10, 0});
}

TEST_CASE("choice: alternatives with rewards are drawn more, and less when rewards end") {
  Choice choice({1, 1});
  for (int i = 0; i < 10; ++i) {
    choice.learn(0, 0);
    choice.learn(1, 1);
  }
  const std::vector<int> after = counts(choice, 100, 2);
  CHECK(after[1] > 90);
  for (int epoch = 0; epoch < 20; ++epoch) choice.age();
  const std::vector<int> aged = counts(choice, 100, 2);
  CHECK(aged[0] > 45);
  CHECK(aged[0] < 55);
}

TEST_CASE("choice: only among those that are eligible, or none") {
  Choice choice({5, 1, 1});
  for (int i = 0; i < 10; ++i) CHECK(choice.next([](std::size_t arm) { return arm != 0; }) != 0);
  CHECK(choice.next([](std::size_t) { return false; }) == Choice::kNone);
  Choice none({0, 0});
  CHECK(none.next(any) == Choice::kNone);
}

TEST_CASE("choice: the same rewards give the same draws") {
  Choice one({1, 2, 3}), other({1, 2, 3});
  for (int i = 0; i < 200; ++i) {
    const std::size_t drawn = one.next(any);
    REQUIRE(drawn == other.next(any));
    const double reward = static_cast<double>((i * 7) % 5) / 4;
    one.learn(drawn, reward);
    other.learn(drawn, reward);
    if (i % 4 == 3) {
      one.age();
      other.age();
    }
  }
}

}  // namespace
}  // namespace lowtide

// The profile against an array that is looked at from end to end each time.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/solve/local/common/state/profile.h"

#include "support/scale.h"

namespace lowtide::solve::local {
namespace {

struct Plain {
  double budget;
  std::vector<double> bytes;
  std::vector<bool> step;

  double over() const {
    double sum = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (step[i]) sum += std::max(0.0, bytes[i] - budget);
    return sum;
  }
  double over_with(std::size_t first, std::size_t last, double delta) const {
    Plain other = *this;
    for (std::size_t i = first; i <= last; ++i) other.bytes[i] += delta;
    return other.over();
  }
  std::vector<double> values() const {
    std::vector<double> values = bytes;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!step[i]) values[i] -= Profile::kHole;
    return values;
  }
};

Plain random_profile(Random& random, std::size_t blocks) {
  Plain plain{.budget = static_cast<double>(random.between(-1, 60)), .bytes = {}, .step = {}};
  for (std::size_t i = 0; i < blocks * Profile::kBlock; ++i) {
    plain.bytes.push_back(static_cast<double>(random.between(0, 50)));
    plain.step.push_back(random.chance(0.5));
  }
  plain.step[random.below(plain.step.size())] = true;
  return plain;
}

void check_equal(Random& random, const Profile& profile, const Plain& plain) {
  CHECK(profile.over() == plain.over());
  CHECK(profile.within() == (plain.over() == 0));
  const std::vector<double> values = plain.values();
  CHECK(profile.peak() == *std::max_element(values.begin(), values.end()));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += profile.at(Slot(i)) != values[i];
  CHECK(wrong == 0);
  const Slot found = profile.find_over(Slot(random.below(values.size())));
  CHECK(found.valid() == (plain.over() > 0));
  if (found.valid()) CHECK(values[found.index()] > plain.budget);
}

// One change of both; the ranges often begin or end at the border of a block.
void change(Random& random, Profile& profile, Plain& plain) {
  const std::size_t slots = plain.bytes.size();
  const auto border = [&] {
    const std::size_t slot = random.below(slots);
    if (random.chance(0.6)) return slot;
    const std::size_t begin = slot / Profile::kBlock * Profile::kBlock;
    return random.chance(0.5) ? begin : begin + Profile::kBlock - 1;
  };
  std::size_t first = border(), last = border();
  if (first > last) std::swap(first, last);
  const auto bytes = static_cast<double>(random.between(0, 30));
  const Slot from(first), to(last);
  switch (random.below(4)) {
    case 0: {
      const double delta = random.chance(0.5) ? bytes : -bytes;
      profile.add(from, to, delta);
      for (std::size_t i = first; i <= last; ++i) plain.bytes[i] += delta;
      break;
    }
    case 1:
      if (plain.step[first]) {
        profile.vacate(from, bytes);
        plain.bytes[first] -= bytes;
      } else {
        profile.fill(from, bytes);
        plain.bytes[first] += bytes;
      }
      plain.step[first] = !plain.step[first];
      break;
    case 2: {
      // Two slots change places.
      const double here = profile.at(from), there = profile.at(to);
      profile.set(from, there);
      profile.set(to, here);
      profile.refresh(from, from);
      profile.refresh(to, to);
      std::swap(plain.bytes[first], plain.bytes[last]);
      const bool step = plain.step[first];
      plain.step[first] = plain.step[last];
      plain.step[last] = step;
      break;
    }
    default:
      CHECK(profile.relief(from, to, bytes) == plain.over() - plain.over_with(first, last, -bytes));
      CHECK(profile.harm(from, to, bytes) == plain.over_with(first, last, bytes) - plain.over());
      CHECK(profile.relief(to + 1, from, bytes) == 0);
      CHECK(profile.harm(to + 1, from, bytes) == 0);
  }
}

TEST_CASE("search profile: against a plain array") {
  for (int i = 0; i < samples(60); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    Plain plain = random_profile(random, 1 + random.below(6));
    Profile profile(plain.budget);
    profile.assign(plain.values());
    check_equal(random, profile, plain);
    for (int step = 0; step < 200; ++step) {
      change(random, profile, plain);
      if (random.chance(0.2)) profile.commit();
      // What stands above the budget is added up only when it is asked for.
      if (random.chance(0.5)) check_equal(random, profile, plain);
    }
    check_equal(random, profile, plain);
  }
}

// A change by its opposite, last first. A step that comes back does so in any slot with a hole,
// with the bytes that it had; the one that it left takes over what stands there.
TEST_CASE("search profile: changes that are reverted") {
  for (int i = 0; i < samples(60); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    Plain plain = random_profile(random, 1 + random.below(6));
    Profile profile(plain.budget);
    profile.assign(plain.values());
    const std::size_t slots = plain.bytes.size();
    for (int round = 0; round < 20; ++round) {
      profile.commit();
      const double before = plain.over();
      CHECK(profile.over() == before);
      std::vector<std::function<void()>> back;
      for (std::size_t count = random.below(6); count > 0; --count) {
        std::size_t first = random.below(slots), last = random.below(slots);
        if (first > last) std::swap(first, last);
        const auto bytes = static_cast<double>(random.between(-30, 30));
        if (random.chance(0.6)) {
          const auto add = [&, first, last](double delta) {
            profile.add(Slot(first), Slot(last), delta);
            for (std::size_t k = first; k <= last; ++k) plain.bytes[k] += delta;
          };
          add(bytes);
          back.emplace_back([add, bytes] { add(-bytes); });
        } else if (plain.step[first] && !plain.step[last]) {
          const auto go = [&](std::size_t from, std::size_t to) {
            const double difference =
                profile.at(Slot(from)) - profile.at(Slot(to)) - Profile::kHole;
            profile.vacate(Slot(from), difference);
            profile.fill(Slot(to), difference);
            plain.bytes[from] -= difference;
            plain.bytes[to] += difference;
            plain.step[from] = false;
            plain.step[to] = true;
          };
          go(first, last);
          // The first change is reverted last, so that nothing else depends on the slot.
          std::size_t home = first;
          if (const std::size_t other = random.below(slots); back.empty() && !plain.step[other])
            home = other;
          back.emplace_back([go, home, last] { go(last, home); });
        }
        if (random.chance(0.3)) CHECK(profile.over() == plain.over());
      }
      if (random.chance(0.3)) continue;
      for (auto undo = back.rbegin(); undo != back.rend(); ++undo) (*undo)();
      profile.reverted();
      CHECK(plain.over() == before);
      check_equal(random, profile, plain);
    }
  }
}

TEST_CASE("search profile: exact at the largest numbers") {
  const double most = Profile::kMostBytes;
  Profile profile(most - 1);
  std::vector<double> values(2 * Profile::kBlock, -Profile::kHole);
  values[3] = most - 1;
  profile.assign(values);
  CHECK(profile.within());
  profile.add(Slot(0), Slot(2 * Profile::kBlock - 1), 1);
  CHECK_FALSE(profile.within());
  CHECK(profile.over() == 1);
  CHECK(profile.at(Slot(4)) == 1 - Profile::kHole);
  profile.fill(Slot(4), most - 2);
  CHECK(profile.at(Slot(4)) == most - 1);
  CHECK(profile.over() == 1);
  profile.vacate(Slot(4), most - 2);
  profile.add(Slot(0), Slot(2 * Profile::kBlock - 1), -1);
  CHECK(profile.at(Slot(4)) == -Profile::kHole);
  CHECK(profile.over() == 0);
  CHECK(profile.within());
}

}  // namespace
}  // namespace lowtide::solve::local

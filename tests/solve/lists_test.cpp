// The two structures under greedy, against plain ones.
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/solve/greedy/order_list.h"
#include "lowtide/solve/greedy/profile.h"

namespace lowtide {
namespace {

void compare(const solve::greedy::OrderList& list,
             const std::vector<solve::greedy::OrderList::Item>& plain) {
  solve::greedy::OrderList::Item item = list.first();
  for (std::size_t i = 0; i < plain.size(); ++i, item = list.next(item)) {
    REQUIRE(item == plain[i]);
    if (i > 0) REQUIRE(list.before(plain[i - 1], item));
  }
  CHECK(item == solve::greedy::OrderList::kNone);
}

TEST_CASE("order list: items at random places") {
  Random random(1);
  solve::greedy::OrderList list(3);
  std::vector<solve::greedy::OrderList::Item> plain = {0, 1, 2};
  for (int i = 0; i < 3000; ++i) {
    const std::size_t at = random.below(plain.size());
    const solve::greedy::OrderList::Item made = list.insert_before(plain[at]);
    plain.insert(plain.begin() + static_cast<std::ptrdiff_t>(at), made);
  }
  compare(list, plain);
}

TEST_CASE("order list: insertion always before one item, and always before the last inserted") {
  solve::greedy::OrderList list(2);
  std::vector<solve::greedy::OrderList::Item> plain = {0};
  for (int i = 0; i < 20000; ++i) plain.push_back(list.insert_before(1));
  plain.push_back(1);
  compare(list, plain);

  solve::greedy::OrderList first(1);
  solve::greedy::OrderList::Item at = 0;
  for (int i = 0; i < 20000; ++i) at = first.insert_before(at);
  CHECK(first.first() == at);
  CHECK(first.before(at, 0));
}

TEST_CASE("profile: suffix changes and maxima") {
  Random random(2);
  solve::greedy::Profile profile;
  std::vector<Bytes> plain;
  for (int i = 0; i < 5000; ++i) {
    const Bytes value(random.between(0, 1000));
    profile.append(value);
    plain.push_back(value);
    if (random.chance(0.5)) {
      const std::size_t begin = random.below(plain.size() + 1);
      const Bytes change(random.between(-500, 500));
      profile.add_from(begin, change);
      for (std::size_t k = begin; k < plain.size(); ++k) plain[k] += change;
    }
    const std::size_t begin = random.below(plain.size());
    REQUIRE(profile.max_from(begin) ==
            *std::max_element(plain.begin() + static_cast<std::ptrdiff_t>(begin), plain.end()));
  }
}

}  // namespace
}  // namespace lowtide

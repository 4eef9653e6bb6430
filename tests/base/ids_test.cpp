#include "lowtide/base/ids.h"

#include <type_traits>
#include <unordered_set>

#include <doctest/doctest.h>

#include "lowtide/base/csr.h"

namespace lowtide {

TEST_CASE("ids: one kind does not pass for another") {
  static_assert(!std::is_convertible_v<OpId, TensorId>);
  static_assert(!std::is_constructible_v<OpId, TensorId>);
  static_assert(!std::is_convertible_v<std::size_t, OpId>);
  static_assert(sizeof(OpId) == 4);
}

TEST_CASE("ids: invalid until given an index, and ordered by it") {
  CHECK_FALSE(OpId().valid());
  CHECK(OpId(0).valid());
  CHECK(OpId(7).index() == 7);
  CHECK(OpId(kMaxCount).index() == kMaxCount);
  CHECK(OpId(1) < OpId(2));
  CHECK(OpId() < OpId(0));
  CHECK(OpId(3) == OpId(3));
  const std::unordered_set<TensorId> set = {TensorId(1), TensorId(2), TensorId(1)};
  CHECK(set.size() == 2);
}

TEST_CASE("compressed rows: empty rows, full rows, nothing at all") {
  Csr<int> rows;
  CHECK(rows.rows() == 0);
  CHECK(rows.size() == 0);
  rows.end_row();
  rows.push(4);
  rows.push(5);
  rows.end_row();
  rows.end_row();
  rows.push(6);
  rows.end_row();
  REQUIRE(rows.rows() == 4);
  CHECK(rows.size() == 3);
  CHECK(rows[0].empty());
  REQUIRE(rows[1].size() == 2);
  CHECK(rows[1][0] == 4);
  CHECK(rows[1][1] == 5);
  CHECK(rows[2].empty());
  CHECK(rows[3].front() == 6);
}

}  // namespace lowtide

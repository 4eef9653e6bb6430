#include "lowtide/base/ids.h"

#include <type_traits>
#include <unordered_set>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/csr.h"
#include "lowtide/base/id_vector.h"

namespace lowtide {

TEST_CASE("ids: one kind does not convert to another") {
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

template <class Vector, class Index>
concept FoundBy = requires(Vector vector, Index index) { vector[index]; };

TEST_CASE("ids: a loop over all ids of a list") {
  std::size_t next = 0;
  for (const OpId op : AllIds<OpId>(3)) CHECK(op.index() == next++);
  CHECK(next == 3);
  for ([[maybe_unused]] const OpId op : AllIds<OpId>(0)) FAIL("there is none");
}

TEST_CASE("a vector by id: only its own id type indexes it") {
  static_assert(FoundBy<IdVector<OpId, int>, OpId>);
  static_assert(!FoundBy<IdVector<OpId, int>, TensorId>);
  static_assert(!FoundBy<IdVector<OpId, int>, std::size_t>);
  static_assert(sizeof(IdVector<OpId, int>) == sizeof(std::vector<int>));
  IdVector<OpId, int> vector(2, 7);
  vector[OpId(1)] = 8;
  vector.push_back(9);
  int sum = 0;
  for (const OpId op : vector.ids()) sum += vector[op];
  CHECK(sum == 7 + 8 + 9);
  CHECK(vector.back() == 9);
}

TEST_CASE("compressed rows: indexed by ids") {
  using Rows = Csr<TensorId, OpId>;
  static_assert(FoundBy<Rows, OpId>);
  static_assert(!FoundBy<Rows, TensorId>);
  static_assert(!FoundBy<Rows, std::size_t>);
  Rows rows;
  rows.end_row();
  rows.push(TensorId(4));
  rows.end_row();
  CHECK(rows[OpId(0)].empty());
  CHECK(rows[OpId(1)].front() == TensorId(4));
}

TEST_CASE("compressed rows: empty and full rows, and no rows") {
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

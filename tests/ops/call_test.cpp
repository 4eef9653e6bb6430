// What calls move, and in which numbers they compute.
#include "lowtide/ops/call.h"

#include <vector>

#include <doctest/doctest.h>

#include "support/calls.h"

namespace lowtide {
namespace {

TEST_CASE("calls: bytes read twice count once, a broadcast counts its stored bytes") {
  ProductAndSum made(10);
  CHECK(moved_bytes(made.add()) == 4 * 2 * 320);
  made.sum[1].strides = {0, 1};
  CHECK(moved_bytes(made.add()) == 4 * (2 * 320 + 32));
  CHECK(computed_in(made.add()) == "f32");
}

TEST_CASE("calls: an embedding reads the rows that it makes") {
  const std::vector<Operand> read{operand("weight", 0, {1000, 8}), operand("indices", 1, {5})};
  const std::vector<Operand> made{operand("", 2, {5, 8})};
  CHECK(moved_bytes({"aten.embedding", read, made, {}}) == 4 * (40 + 5 + 40));
  CHECK(moved_bytes({"aten.embedding.default", read, made, {}}) == 4 * (40 + 5 + 40));
  CHECK(moved_bytes({"aten.index_put", read, made, {}}) == 4 * (8000 + 5 + 40));
}

}  // namespace
}  // namespace lowtide

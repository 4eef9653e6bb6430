// How many operations ops do, from their kinds and shapes.
#include "lowtide/ops/operations.h"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"

#include "support/one_op.h"

namespace lowtide {
namespace {

std::int64_t operations(const std::string& kind, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs) {
  return counted_operations(one(kind, inputs, outputs), OpId(0));
}

TEST_CASE("operations: matrix products") {
  const Tensor a = tensor({3, 5}), b = tensor({5, 7}), bias = tensor({7}), out = tensor({3, 7});
  CHECK(operations("aten.mm", {a, b}, {out}) == 2 * 3 * 5 * 7);
  CHECK(operations("aten.mm.default", {a, tensor({7, 5})}, {out}) == 2 * 3 * 5 * 7);  // transposed
  CHECK(operations("aten.addmm", {bias, a, b}, {out}) == 2 * 3 * 5 * 7);
  CHECK(operations("aten.mm", {tensor({5, 5})}, {tensor({5, 5})}) == 2 * 125);  // with itself
  CHECK(operations("aten.mm", {tensor({3, 15}), b}, {out}) == 2 * 3 * 5 * 7);   // a slice
  CHECK(operations("aten.bmm", {tensor({2, 3, 5}), tensor({2, 5, 7})}, {tensor({2, 3, 7})}) ==
        2 * 2 * 3 * 5 * 7);
  CHECK(operations("aten.linear", {tensor({2, 3, 5}), tensor({7, 5}), bias}, {tensor({2, 3, 7})}) ==
        2 * 2 * 3 * 5 * 7);
  CHECK(operations("aten.mm", {tensor({0, 5}), b}, {tensor({0, 7})}) == 0);
}

TEST_CASE("operations: convolutions, there and back") {
  const Tensor in = tensor({2, 3, 8, 8}), weight = tensor({4, 3, 3, 3}), bias = tensor({4}),
               out = tensor({2, 4, 6, 6});
  const std::int64_t once = 2 * (2 * 6 * 6) * (4 * 3 * 3 * 3);
  CHECK(operations("aten.convolution", {in, weight, bias}, {out}) == once);
  CHECK(operations("aten.convolution_backward", {out, in, weight}, {in, weight, bias}) == 2 * once);
  CHECK(operations("aten.convolution_backward", {out, in, weight}, {weight, bias}) == once);
  const Tensor up = tensor({3, 4, 2, 2});  // transposed: from 3 channels to 4
  CHECK(operations("aten.convolution", {in, up}, {tensor({2, 4, 16, 16})}) ==
        2 * (2 * 8 * 8) * (3 * 4 * 2 * 2));
}

TEST_CASE("operations: attention, two products forward and five backward") {
  const Tensor q = tensor({2, 4, 16, 8}), k = tensor({2, 4, 32, 8}), v = k;
  const std::int64_t product = 2 * (2 * 4 * 16 * 32 * 8);
  CHECK(operations("aten._scaled_dot_product_flash_attention", {q, k, v}, {q}) == 2 * product);
  CHECK(operations("aten._scaled_dot_product_flash_attention_backward", {q, q, k, v}, {q, k, v}) ==
        5 * product);
}

TEST_CASE("operations: an error names the op that cannot be counted and what is missing") {
  const auto refused = [](const Graph& graph, const std::string& why) {
    try {
      counted_operations(graph, OpId(0));
      FAIL("counted");
    } catch (const InputError& error) {
      const std::string what = error.what();
      CAPTURE(what);
      CHECK(error.place() == "op 0 \"it\"");
      CHECK(what.find(why) != std::string::npos);
      CHECK(what.find("\"flops\"") != std::string::npos);
    }
  };
  const Tensor a = tensor({3, 5}), out = tensor({3, 7});
  refused(one("", {a}, {out}), "has no \"kind\"");
  refused(one("MatMul", {a}, {out}), "\"MatMul\" is none whose operations can be counted");
  refused(one("mine.op", {a}, {out}), "\"mine.op\"");
  refused(one("aten.mm", {tensor({}), a}, {out}), "has no \"shape\"");
  refused(one("aten.mm", {tensor({11}), tensor({13})}, {out}), "do not say how many");
  refused(one("aten.addmm", {a}, {out}), "do not say how many");
  refused(one("aten.convolution", {a, a}, {out}), "do not say how many");
  refused(one("aten._scaled_dot_product_flash_attention", {tensor({2, 3, 4})}, {out}),
          "do not say how many");
}

TEST_CASE("operations: counts beyond 63 bits are refused") {
  const std::int64_t large = 1LL << 31;
  Tensor huge = tensor({1});
  huge.shape = {large, large};
  CHECK_THROWS_AS(operations("aten.mm", {huge, huge}, {huge}), OverflowError);
}

}  // namespace
}  // namespace lowtide

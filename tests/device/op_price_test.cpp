// What ops do, from kinds and shapes, and what that costs on an A100.
#include "lowtide/device/op_price.h"

#include <initializer_list>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"
#include "lowtide/device/operations.h"
#include "lowtide/device/roofline.h"
#include "lowtide/graph/builder.h"

namespace lowtide {
namespace {

using Shape = std::vector<std::int64_t>;

Tensor tensor(Shape shape, const std::string& dtype = "f32") {
  Tensor made;
  std::int64_t numbers = 1;
  for (const std::int64_t extent : shape) numbers *= extent;
  made.bytes = Bytes(numbers * (dtype == "bf16" ? 2 : 4));
  made.shape = std::move(shape);
  made.dtype = dtype;
  return made;
}

// One op over inputs of these shapes.
Graph one(const std::string& kind, const std::vector<Tensor>& inputs,
          const std::vector<Tensor>& outputs, TickUnit tick = TickUnit::ns) {
  GraphBuilder builder;
  builder.set_tick(tick);
  OpLinks links;
  for (const Tensor& given : inputs)
    links.inputs.push_back(static_cast<std::int64_t>(builder.add_tensor(given).index()));
  for (const Tensor& made : outputs)
    links.outputs.push_back(static_cast<std::int64_t>(builder.add_tensor(made).index()));
  Op op;
  op.name = "it";
  op.kind = kind;
  op.time = Ticks(7);
  builder.add_op(op, links);
  return builder.build();
}

std::int64_t operations(const std::string& kind, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs) {
  return counted_operations(one(kind, inputs, outputs), OpId(0));
}

const StatedOperations kNothing = [](const Op&) { return std::nullopt; };
const Device& a100() { return *find_built_in_device("a100"); }

std::int64_t price(const Graph& graph, const StatedOperations& stated = kNothing) {
  return priced_on(graph, a100(), stated).time(OpId(0)).count();
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

TEST_CASE("operations: what cannot be counted names the op and what is missing") {
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

TEST_CASE("operations: beyond 63 bits") {
  const std::int64_t large = 1LL << 31;
  Tensor huge = tensor({1});
  huge.shape = {large, large};
  CHECK_THROWS_AS(operations("aten.mm", {huge, huge}, {huge}), OverflowError);
}

TEST_CASE("prices: kind, number type and bytes") {
  const Tensor a = tensor({3, 5}), b = tensor({5, 7}), out = tensor({3, 7});
  CHECK(price(one("aten.mm", {a, b}, {out})) == kernel_ns(a100(), 210, "f32", 284));
  CHECK(price(one("aten.relu", {a}, {a})) == kernel_ns(a100(), 0, "f32", 120));
  const Tensor index = tensor({3}, "i64"), half = tensor({1024, 1024}, "bf16");
  CHECK(price(one("aten.mm", {index, half, half}, {half})) ==
        kernel_ns(a100(), 2LL << 30, "bf16", 3 * (2 << 20) + 12));
  const Tensor image = tensor({8, 64, 64, 64}), weight = tensor({64, 64, 3, 3});
  CHECK(price(one("aten.convolution", {image, weight}, {image})) ==
        kernel_ns(a100(), 2LL * 8 * 64 * 64 * 64 * 64 * 9, "tf32",
                  2 * image.bytes.count() + weight.bytes.count()));
}

TEST_CASE("prices: what is stated stands before what is counted") {
  const auto stated = [](const Op&) { return std::optional<std::int64_t>(1'000'000'000); };
  CHECK(price(one("MatMul", {}, {tensor({1})}), stated) ==
        kernel_ns(a100(), 1'000'000'000, "f32", 4));
}

TEST_CASE("prices: ticks of time stay, others become ns") {
  const Tensor a = tensor({1 << 20});
  const auto priced = [&](TickUnit tick) {
    return priced_on(one("aten.relu", {a}, {a}, tick), a100(), kNothing);
  };
  const std::int64_t ns = kernel_ns(a100(), 0, "f32", 8 << 20);
  CHECK(priced(TickUnit::ns).time(OpId(0)) == Ticks(ns));
  CHECK(priced(TickUnit::us).time(OpId(0)) == Ticks((ns + 999) / 1000));
  CHECK(priced(TickUnit::us).tick() == TickUnit::us);
  CHECK(priced(TickUnit::ms).total_time() == Ticks(1));
  CHECK(priced(TickUnit::none).tick() == TickUnit::ns);
  CHECK(priced(TickUnit::none).time(OpId(0)) == Ticks(ns));
  // Ticks of flop say what the op does.
  const Graph counted = priced_on(one("x", {a}, {}, TickUnit::flop), a100(), kNothing);
  CHECK(counted.tick() == TickUnit::ns);
  const Graph some = priced_on(one("x", {}, {tensor({1})}, TickUnit::flop), a100(), kNothing);
  CHECK(some.op(OpId(0)).time == Ticks(kernel_ns(a100(), 7, "f32", 4)));
}

TEST_CASE("prices: barriers, states and assertions are free; collectives take the peer link") {
  const Tensor a = tensor({1 << 20});
  CHECK(price(one("lowtide.barrier", {a}, {a})) == 0);
  CHECK(price(one("lowtide.random_state", {}, {a})) == 0);
  CHECK(price(one("aten._assert_async", {a}, {})) == 0);
  CHECK(price(one("_c10d_functional.wait_tensor", {a}, {a})) == 0);
  CHECK(price(one("_c10d_functional.all_reduce", {a}, {a})) == collective_ns(a100(), 8 << 20));
  CHECK(price(one("_c10d_functional.all_gather_into_tensor", {a}, {a})) ==
        collective_ns(a100(), 4 << 20));
}

TEST_CASE("prices: what does not fit into 63 bits names the op") {
  const auto most = [](const Op&) { return std::optional(std::int64_t{INT64_MAX}); };
  Device slow = a100();
  slow.rates = {{"f32", 1}};
  CHECK_THROWS_WITH_AS(priced_on(one("x", {}, {tensor({1})}), slow, most),
                       doctest::Contains("op 0 \"it\""), InputError);
}

}  // namespace
}  // namespace lowtide

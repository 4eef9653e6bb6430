// What ops cost on an A100, from kinds and shapes.
#include "lowtide/device/op_price.h"

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"
#include "lowtide/device/roofline.h"

#include "support/one_op.h"

namespace lowtide {
namespace {

const StatedOperations kNothing = [](const Op&) { return std::nullopt; };
const Device& a100() { return *find_built_in_device("a100"); }

std::int64_t price(const Graph& graph, const StatedOperations& stated = kNothing) {
  return priced_on(graph, a100(), stated).time(OpId(0)).count();
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

TEST_CASE("prices: stated operations override counted ones") {
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

TEST_CASE("prices: a collective of some ranks sends their share, and no buffer of the group") {
  const auto sent = [](const std::string& kind, std::int64_t ranks) {
    GraphBuilder builder;
    const TensorId part = builder.add_tensor(tensor({1 << 18}));
    const TensorId whole = builder.add_tensor(tensor({1 << 20}));
    const TensorId buffer = builder.add_tensor(tensor({1 << 22}));
    Op op;
    op.kind = kind;
    op.results = {
        {.argument = "", .tensor = whole, .shape = {1 << 20}, .strides = {1}, .dtype = "f32"}};
    op.arguments = {{"lowtide.ranks", {ranks}}};
    builder.add_op(std::move(op), {part}, {whole, buffer});
    return price(builder.build());
  };
  CHECK(sent("_c10d_functional.all_gather_into_tensor", 4) == collective_ns(a100(), 3 << 20));
  CHECK(sent("_c10d_functional.all_reduce", 4) == collective_ns(a100(), 6 << 20));
  CHECK(sent("_c10d_functional.all_reduce", 1) == collective_ns(a100(), 0));
  CHECK(sent("_c10d_functional.broadcast", 4) == collective_ns(a100(), 4 << 20));
}

TEST_CASE("prices: an error beyond 63 bits names the op") {
  const auto most = [](const Op&) { return std::optional(std::int64_t{INT64_MAX}); };
  Device slow = a100();
  slow.rates = {{"f32", 1}};
  CHECK_THROWS_WITH_AS(priced_on(one("x", {}, {tensor({1})}), slow, most),
                       doctest::Contains("op 0 \"it\""), InputError);
}

}  // namespace
}  // namespace lowtide

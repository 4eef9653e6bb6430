// What parts of ops cost, beside the whole op.
#include "lowtide/device/part_price.h"

#include <cmath>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"
#include "lowtide/device/roofline.h"
#include "lowtide/graph/builder.h"

#include "support/calls.h"

namespace lowtide {
namespace {

Graph graph(std::int64_t rows, TickUnit tick, std::int64_t product_time, std::int64_t sum_time) {
  GraphBuilder builder;
  builder.set_tick(tick);
  for (const std::int64_t numbers : {rows * 64, std::int64_t{64 * 32}, rows * 32, rows * 32}) {
    Tensor tensor;
    tensor.bytes = Bytes(4 * numbers);
    builder.add_tensor(tensor);
  }
  const ProductAndSum made(rows);
  const auto add = [&](const Call& call, OpLinks links, std::int64_t time) {
    Op op;
    op.kind = call.kind;
    op.operands = {call.operands.begin(), call.operands.end()};
    op.results = {call.results.begin(), call.results.end()};
    for (const Operand& o : op.operands)
      links.operand_tensors.push_back(static_cast<std::int64_t>(o.tensor.index()));
    for (const Operand& o : op.results)
      links.result_tensors.push_back(static_cast<std::int64_t>(o.tensor.index()));
    op.time = Ticks(time);
    op.workspace = Bytes(1000);
    builder.add_op(op, links);
  };
  OpLinks first, second;
  first.inputs = {0, 1};
  first.outputs = {2};
  second.inputs = {2};
  second.outputs = {3};
  add(made.mm(), first, product_time);
  add(made.add(), second, sum_time);
  return builder.build();
}

Device plain() {
  Device device;
  device.name = "plain";
  device.rates = {{"f32", 1'000'000'000}};
  device.bytes_per_second = 1'000'000'000;
  device.measured = true;
  return device;
}

TEST_CASE("prices: a kernel that is too small for its device") {
  Device device = plain();
  const Work work{.operations = 1000, .bytes = 500};
  CHECK(small_kernel_ns(device, work, "f32") == 1000);
  CHECK(small_kernel_ns(device, work, "f32") == kernel_ns(device, 1000, "f32", 500));
  device.launch_ns = 7;
  device.compute_ramp_ns = 100;
  device.memory_ramp_ns = 700;
  CHECK(small_kernel_ns(device, work, "f32") == 7 + 1200);
  CHECK(small_kernel_ns(device, {.operations = 1000}, "f32") == 7 + 1100);
  CHECK(small_kernel_ns(device, {}, "f32") == 7);
  device.multiprocessors = 4;
  // 15 tiles of 128 x 64 in four rounds, each at 6 / 7 of the pace; 9 of 128 x 128 would take three
  CHECK(small_kernel_ns(device, {.operations = 900, .rows = 300, .columns = 300}, "f32") ==
        7 + 100 + 1120);
  // four of 128 x 64 in one full round; two of 128 x 128 would leave half of it idle
  CHECK(small_kernel_ns(device, {.operations = 900, .rows = 256, .columns = 128}, "f32") ==
        7 + 100 + 1051);
  // one keeps one of the four busy
  CHECK(small_kernel_ns(device, {.operations = 900, .rows = 9, .columns = 9}, "f32") ==
        7 + 100 + 3600);
}

TEST_CASE("prices: small kernels run below the rate of every device, large ones near it") {
  for (const Device& device : built_in_devices()) {
    CAPTURE(device.name);
    const Work large{.operations = 1'000'000'000'000'000, .rows = 1 << 20, .columns = 1 << 20};
    const auto full = static_cast<double>(kernel_ns(device, large.operations, "f32", 0));
    CHECK(static_cast<double>(small_kernel_ns(device, large, "f32")) < 1.01 * full);
    CHECK(small_kernel_ns(device, {.bytes = 1}, "f32") >= kernel_ns(device, 0, "f32", 1));
  }
}

TEST_CASE("parts: a share of the op's time, whatever its source") {
  const Device device = plain();
  const Graph whole = graph(100, TickUnit::us, 4000, 50);
  const PartPricer pricer(whole, device, nullptr);
  CHECK(pricer.part(OpId(0), ProductAndSum(100).mm()) ==
        PartPricer::Cost{Ticks(4000), Bytes(1000)});
  CHECK(pricer.part(OpId(0), ProductAndSum(25).mm()).time == Ticks(1000));
  CHECK(pricer.part(OpId(1), ProductAndSum(50).add()) == PartPricer::Cost{Ticks(25), Bytes(500)});
  Device slow = device;
  slow.launch_ns = 1'000'000'000;  // nothing but the start counts
  CHECK(PartPricer(whole, slow, nullptr).part(OpId(0), ProductAndSum(25).mm()).time > Ticks(3990));
}

TEST_CASE("parts: together they take at least the time of the whole") {
  for (const Device& device : built_in_devices()) {
    CAPTURE(device.name);
    const Graph whole = graph(4096, TickUnit::ns, 123'457, 12'347);
    const PartPricer pricer(whole, device, nullptr);
    for (const std::int64_t n : {2, 4, 16, 64})
      for (const std::size_t op : {std::size_t{0}, std::size_t{1}}) {
        const ProductAndSum made(4096 / n);
        const Ticks part = pricer.part(OpId(op), op == 0 ? made.mm() : made.add()).time;
        CHECK(n * part.count() >= whole.time(OpId(op)).count());
      }
  }
}

TEST_CASE("parts: in flop they share operations, and copies are free") {
  const Graph whole = graph(100, TickUnit::flop, 2 * 100 * 64 * 32, 0);
  const Device device = plain();
  const PartPricer pricer(whole, device, nullptr);
  CHECK(pricer.part(OpId(0), ProductAndSum(25).mm()).time == Ticks(2 * 25 * 64 * 32));
  CHECK(pricer.part(OpId(1), ProductAndSum(25).add()).time == Ticks(0));
  CHECK(pricer.copy(1 << 20).time == Ticks(0));
}

TEST_CASE("copies: at the rate of ops that only move bytes") {
  const Device device = plain();
  const std::int64_t moved = moved_bytes(ProductAndSum(100).add());
  CHECK(PartPricer(graph(100, TickUnit::us, 4000, 50), device, nullptr).copy(moved / 2).time ==
        Ticks(25));
  CHECK(PartPricer(graph(100, TickUnit::none, 4000, 50), device, nullptr).copy(moved).time ==
        Ticks(50));
  // nothing streams: the product's pace
  CHECK(PartPricer(graph(100, TickUnit::us, 4000, 0), device, nullptr).copy(moved).time > Ticks(0));
}

TEST_CASE("tables: a measured call overrides the model") {
  const Graph whole = graph(100, TickUnit::us, 4000, 50);
  const Device device = plain();
  CostTable table = costs_of(whole);
  CHECK(table.entries().size() == 2);
  CHECK(*table.find(ProductAndSum(100).mm()) == CallCost{4'000'000, Bytes(1000)});
  CHECK(table.find(ProductAndSum(25).mm()) == nullptr);
  CHECK(price(device, &table, ProductAndSum(100).mm(), "it").ns == 4'000'000);
  CHECK(price(device, &table, ProductAndSum(25).mm(), "it").ns == 2 * 25 * 64 * 32);
  const ProductAndSum quarter(25);
  CHECK(table.add({"aten.mm", quarter.product, {}, {1'999'001, Bytes(3)}}));
  CHECK_FALSE(table.add({"aten.mm", quarter.product, {}, {1, Bytes(3)}}));
  CHECK(PartPricer(whole, device, &table).part(OpId(0), quarter.mm()) ==
        PartPricer::Cost{Ticks(2000), Bytes(3)});
  CHECK_THROWS_AS(costs_of(graph(100, TickUnit::flop, 1, 1)), InputError);
}

TEST_CASE("tables: arguments count, their order does not") {
  const ProductAndSum made(10);
  CostTable table;
  const Argument a{"a", {std::int64_t{1}}}, b{"b", {Literal::List{{true}, {2.5}}}};
  const std::vector<Argument> ab{a, b}, ba{b, a}, only{a};
  table.add({"aten.mm", made.product, ab, {5, Bytes(0)}});
  CHECK(table.find({"aten.mm", made.product, {}, ba}) != nullptr);
  CHECK(table.find({"aten.mm", made.product, {}, only}) == nullptr);
  CHECK(table.find({"aten.bmm", made.product, {}, ab}) == nullptr);
}

TEST_CASE("parts: an op without a price beyond 63 bits does not affect others") {
  const std::int64_t large = std::int64_t{1} << 31;
  GraphBuilder builder;
  builder.set_tick(TickUnit::ns);
  Tensor tensor;
  tensor.bytes = Bytes(4);
  const TensorId only = builder.add_tensor(tensor);
  Op op;
  op.name = "it";
  op.kind = "aten.mm";
  for (const char* argument : {"self", "mat2"}) {
    op.operands.push_back(operand(argument, only.index(), {large, large}));
    op.operands.back().strides.assign(2, 0);
  }
  builder.add_op(op, {only}, {});
  const Graph graph = builder.build();
  const Device device = plain();
  CHECK(PartPricer(graph, device, nullptr).copy(1'000'000).time > Ticks(0));
}

TEST_CASE("parts: an op without any information has no price") {
  GraphBuilder builder;
  builder.set_tick(TickUnit::ns);
  Op op;
  op.name = "it";
  op.kind = "aten.mm";
  builder.add_op(op, {});
  const Graph bare = builder.build();
  const Device device = plain();
  CHECK_THROWS_WITH_AS(PartPricer(bare, device, nullptr).part(OpId(0), ProductAndSum(1).mm()),
                       doctest::Contains("has no \"operands\""), InputError);
}

}  // namespace
}  // namespace lowtide

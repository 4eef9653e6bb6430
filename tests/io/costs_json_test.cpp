// Cost files: what is read, what is refused and in which words.
#include "lowtide/io/costs_json.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "io/refusal.h"

namespace lowtide {
namespace {

const std::string kSmall =
    R"({"format": "lowtide-costs", "version": 1, "device": "mine", "costs": [
        {"kind": "aten.sum", "operands": [{"argument": "self", "shape": [2, 3], "strides": [3, 1], "dtype": "f32"}],
         "arguments": {"dim": [0], "keepdim": false}, "time_ns": 12, "workspace": 34}]})";

std::string with(const std::string& old, const std::string& now) {
  std::string text = kSmall;
  const auto at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), now);
}

io::CostFile read(const std::string& text) { return io::read_costs_text(text, "c.json"); }

TEST_CASE("cost file: read, and written as it was") {
  const io::CostFile costs = read(kSmall);
  CHECK(costs.device == "mine");
  REQUIRE(costs.table.entries().size() == 1);
  const CostTable::Entry& entry = costs.table.entries().front();
  CHECK(entry.kind == "aten.sum");
  CHECK(entry.operands.front().shape == std::vector<std::int64_t>{2, 3});
  CHECK(entry.cost == CallCost{12, Bytes(34)});
  const io::CostFile again = read(io::write_costs(costs));
  CHECK(io::write_costs(again) == io::write_costs(costs));
  const Call call{entry.kind, entry.operands, {}, entry.arguments};
  REQUIRE(again.table.find(call) != nullptr);
  CHECK(*again.table.find(call) == entry.cost);
}

TEST_CASE("cost file: unknown keys give one warning") {
  CHECK(read(kSmall).warnings.empty());
  CHECK(read(with("\"time_ns\"", "\"mood\": 1, \"time_ns\"")).warnings.size() == 1);
}

TEST_CASE("cost file: refused files") {
  const auto check = [](const std::string& text, const std::string& place,
                        const std::string& reason) {
    CAPTURE(text);
    const Refusal refusal = refusal_of([&] { read(text); });
    CHECK(refusal.file == "c.json");
    CHECK(refusal.place == place);
    CHECK_MESSAGE(refusal.reason.find(reason) != std::string::npos, refusal.reason);
  };
  check("{}", "", "has no \"format\": this is not a cost table file");
  check(with("lowtide-costs", "lowtide-device"), "/format", "this is a device, not a cost table");
  check(R"({"format": "lowtide-costs", "version": 1})", "", "has no \"costs\"");
  check(with("\"kind\": \"aten.sum\", ", ""), "/costs/0", "has no \"kind\"");
  check(with(", \"time_ns\": 12", ""), "/costs/0", "has no \"time_ns\"");
  check(with("\"time_ns\": 12", "\"time_ns\": -12"), "/costs/0/time_ns", "negative");
  check(with("\"time_ns\": 12", "\"time_ns\": 1.5"), "/costs/0/time_ns", "");
  check(with("\"strides\": [3, 1], ", ""), "/costs/0/operands/0", "has no \"strides\"");
  check(with("[2, 3]", "[2, -3]"), "/costs/0/operands/0/shape/1", "negative");
  check(with("[\n        {", "[\n        3, {"), "/costs/0", "must be an object");
  check(with("34}]}", "34}, " + kSmall.substr(kSmall.find("{\"kind\""))), "/costs/1",
        "is listed before");
}

}  // namespace
}  // namespace lowtide

// What may be set, and what an option says of each op.
#include "lowtide/solve/interface/options.h"

#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"

namespace lowtide {
namespace {

const solve::OptionSpec kSpecs[] = {
    {.name = "count",
     .usage = "",
     .default_number = 2,
     .low = 1,
     .high = 8,
     .whole = true,
     .of_ops = true},
    {.name = "share", .usage = "", .default_number = 0.5, .low = 0, .high = 1},
};

Graph named_graph() {
  GraphBuilder builder;
  for (const char* name : {"conv:1", "conv:2", "", "a[0]", "a0"}) {
    Tensor tensor;
    tensor.bytes = Bytes(1);
    Op op;
    op.name = name;
    op.time = Ticks(1);
    const TensorId made = builder.add_tensor(std::move(tensor));
    builder.add_op(std::move(op), {}, {made});
  }
  return builder.build();
}

TEST_CASE("options: the last value counts, and one out of range is refused") {
  solve::Options options(kSpecs);
  CHECK(options.number("share") == 0.5);
  options.set("share", "0.25");
  options.set("share", "1");
  CHECK(options.number("share") == 1);
  for (const char* wrong : {"", "2", "nan", "0.5x", "a:0.5", ":"})
    CHECK_THROWS_AS(options.set("share", wrong), InputError);
  CHECK_THROWS_AS(options.set("chare", "1"), InputError);
}

TEST_CASE("options: numbers for single ops by name, pattern or index") {
  const Graph graph = named_graph();
  const auto counts = [&](std::initializer_list<const char*> values) {
    solve::Options options(kSpecs);
    for (const char* value : values) options.set("count", value);
    return options.numbers("count", graph);
  };
  CHECK(counts({}) == std::vector<double>{2, 2, 2, 2, 2});
  CHECK(counts({"3"}) == std::vector<double>{3, 3, 3, 3, 3});
  CHECK(counts({"conv:2:5"}) == std::vector<double>{2, 5, 2, 2, 2});
  CHECK(counts({"#2:4", "3"}) == std::vector<double>{3, 3, 4, 3, 3});
  CHECK(counts({"conv*:5", "conv??:6", "conv:1:7"}) == std::vector<double>{7, 6, 2, 2, 2});
  CHECK(counts({"a?:8"}) == std::vector<double>{2, 2, 2, 2, 8});
  CHECK(counts({"a[0]:8"}) == std::vector<double>{2, 2, 2, 8, 2});
  solve::Options all(kSpecs);
  all.set("count", "*:3");
  CHECK(all.numbers("count", GraphBuilder().build()).empty());
  CHECK(counts({"*:1", "#0:8"}) == std::vector<double>{8, 1, 1, 1, 1});
  for (const char* wrong : {"conv:3:5", "#5:5", "#-1:5", "#:5", "con:2"})
    CHECK_THROWS_AS(counts({wrong}), InputError);
  for (const char* wrong : {"1.5", "conv*:1.5", "conv*:9", "conv*:", "conv*", ":x"})
    CHECK_THROWS_AS(counts({wrong}), InputError);
}

TEST_CASE("options: a list has each name once, and unknown names are refused") {
  const solve::OptionSpec specs[] = {{.name = "parts",
                                      .usage = "",
                                      .default_choice = "a",
                                      .choices = {"a", "b"},
                                      .several = true}};
  const auto said = [&](const char* value) {
    solve::Options options(specs);
    try {
      options.set("parts", value);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(said("a,b").empty());
  CHECK(said("a,a").find("\"a\" is listed twice") != std::string::npos);
  for (const char* wrong : {"", ",", "a,,", "c,c"})
    CHECK(said(wrong).find("is not one of a, b") != std::string::npos);
}

}  // namespace
}  // namespace lowtide

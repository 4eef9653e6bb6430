#include "lowtide/plan/techniques.h"

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/sim/verify.h"

#include "support/sketch.h"

namespace lowtide {
namespace {

std::string names(std::string_view list, bool has_machine) {
  std::string text;
  for (const std::string_view name : names_of(parse_techniques(list, has_machine)))
    text += (text.empty() ? "" : " ") + std::string(name);
  return text;
}

TEST_CASE("techniques: a list is the whole set") {
  CHECK(names("default", false) == "recompute in_place");
  CHECK(names("default", true) == "recompute in_place offload");
  CHECK(names("all", false) == "recompute in_place offload split hoist substitute");
  CHECK(names("default,split", false) == "recompute in_place split");
  CHECK(names("in_place", true) == "in_place");
  CHECK(names(" Recompute , offload ", true) == "recompute offload");
  CHECK(names("default,recompute", false) == "recompute in_place");
}

TEST_CASE("techniques: unknown names are refused") {
  for (const std::string_view list : {"", ",", "recompute,", "fuse", "recompute in_place", "none"})
    CHECK_THROWS_AS(parse_techniques(list, true), InputError);
  CHECK_THROWS_AS(parse_techniques("offload", false), InputError);
}

TEST_CASE("verify: holds a plan to its techniques") {
  const Graph graph = Sketch({10, 20, 20, 5})
                          .op({0}, {1})
                          .op({1}, {2})
                          .in_place({{1, 2}})
                          .op({2}, {3})
                          .keep({3})
                          .graph();
  const auto holds = [&](const char* plan, const Techniques& techniques,
                         std::optional<Bytes> host = std::nullopt) {
    return verify({.graph = graph,
                   .budget = Bytes(100),
                   .machine = machine_by_hand(),
                   .techniques = techniques,
                   .host_budget = host},
                  steps(plan))
        .ok;
  };
  const Techniques none{.recompute = false, .in_place = false, .offload = false};
  CHECK(holds("c0 c1 f1 c2", none));
  CHECK_FALSE(holds("c0 i1,1 c2", none));
  CHECK(holds("c0 i1,1 c2", {.recompute = false, .in_place = true, .offload = false}));
  CHECK_FALSE(holds("c0 c1 f1 c0 c2", none));
  CHECK(holds("c0 c1 f1 c0 c2", {.recompute = true, .in_place = false, .offload = false}));
  CHECK_FALSE(holds("c0 o1 c1 c2", none));
  CHECK(holds("c0 o1 c1 c2", {.recompute = false, .in_place = false, .offload = true}));
  CHECK(holds("c0 o1 c1 c2", {}, Bytes(20)));
  CHECK_FALSE(holds("c0 o1 c1 c2", {}, Bytes(19)));
}

}  // namespace
}  // namespace lowtide

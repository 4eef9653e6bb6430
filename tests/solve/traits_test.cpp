// Words for traits, and that every solver of ours serves a purpose.
#include "lowtide/solve/interface/traits.h"

#include <doctest/doctest.h>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve {
namespace {

TEST_CASE("traits: a set and its text") {
  Traits traits{Trait::external, Trait::proving};
  CHECK(traits.words() == std::vector<std::string_view>{"proving", "external"});
  CHECK(traits.has(Trait::proving));
  CHECK_FALSE(traits.has(Trait::tight));
  CHECK(Traits{}.empty());
  traits.add(Trait::tight);
  CHECK(traits == Traits{Trait::tight, Trait::proving, Trait::external});
  for (const Trait trait : kTraits) {
    CHECK(trait_of(to_string(trait)) == trait);
    CHECK(Traits{trait}.words() == std::vector{to_string(trait)});
  }
  CHECK_FALSE(trait_of("quick"));
}

// What `auto` is made of, in the order in which it asks.
TEST_CASE("traits: every solver but the baselines has a role") {
  const SolverTable table = make_solvers();
  for (const auto& solver : table.all()) {
    CAPTURE(solver->name());
    CHECK(solver->traits().empty() == (solver->name() == "sqrt" || solver->name() == "greedy"));
    CHECK_FALSE(solver->traits().has(Trait::guest));
  }
  const auto names = [&](Trait trait) {
    std::vector<std::string_view> found;
    for (const Solver* solver : table.with(trait)) found.push_back(solver->name());
    return found;
  };
  using Names = std::vector<std::string_view>;
  CHECK(names(Trait::constructive) ==
        Names{"given", "exhaustive", "drop", "mirror", "evict", "offload"});
  CHECK(names(Trait::tight) == Names{"order", "drop", "twremat", "pwremat"});
  CHECK(names(Trait::anytime) == Names{"search", "moccasin"});
  CHECK(names(Trait::proving) == Names{"bounds", "checkmate"});
  CHECK(names(Trait::external) == Names{"moccasin", "checkmate"});
  CHECK(names(Trait::transfers) == Names{"given", "offload", "search", "bounds"});
  CHECK(names(Trait::transforms) == Names{"magis"});
  CHECK(names(Trait::portfolio).empty());
  REQUIRE(table.own(Trait::anytime) != nullptr);
  CHECK(table.own(Trait::anytime)->name() == "search");
  CHECK(table.own(Trait::external) == nullptr);
}

}  // namespace
}  // namespace lowtide::solve

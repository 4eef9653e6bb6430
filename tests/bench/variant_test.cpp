// A table whose options are set otherwise is in all else the table that it was.
#include "bench/variant.h"

#include <doctest/doctest.h>

#include "lowtide/driver/auto/auto.h"
#include "lowtide/driver/driver.h"

#include "support/part.h"

namespace lowtide::bench {
namespace {

TEST_CASE("variant: a solver with other default options") {
  const solve::SolverTable all = driver::all_solvers();
  const solve::SolverTable varied =
      vary(all, {.options = {"search.push=off"}, .without = {"greedy"}});
  CHECK(varied.find("greedy") == nullptr);
  CHECK(varied.all().size() + 1 == all.all().size());
  for (const auto& solver : varied.all()) {
    const solve::Solver& original = *all.find(solver->name());
    CAPTURE(solver->name());
    CHECK(solver->summary() == original.summary());
    CHECK(solver->traits() == original.traits());
    CHECK(solver->missing() == original.missing());
    REQUIRE(solver->options().size() == original.options().size());
    for (std::size_t i = 0; i < original.options().size(); ++i) {
      const solve::OptionSpec &now = solver->options()[i], &before = original.options()[i];
      CHECK(now.name == before.name);
      if (solver->name() == "search" && now.name == "push")
        CHECK(now.default_choice == "off");
      else
        CHECK(now.default_choice == before.default_choice);
    }
  }
  CHECK(varied.find("checkmate")->traits().has(solve::Trait::external));
  CHECK_FALSE(varied.find("search")->traits().has(solve::Trait::external));
}

// A claim that is not true.
class Boasting final : public solve::Solver {
 public:
  std::string_view name() const override { return "bounds"; }
  std::string_view summary() const override { return "claims too much"; }
  solve::Traits traits() const override { return {solve::Trait::proving, solve::Trait::guest}; }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem&, solve::Context& context) const override {
    context.limits().spend();
    context.raise_engine_bound(Ticks(100));
    return context.finish();
  }
};

TEST_CASE("variant: auto does not trust the bound of a registered solver") {
  solve::SolverTable table;
  table.add(std::make_unique<Boasting>());
  table.add(std::make_unique<Part>("greedy", solve::Traits{solve::Trait::constructive},
                                   std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(driver::make_auto());
  const solve::SolverTable varied = vary(table, {});
  const Graph graph = late_reader();
  driver::Request request;
  request.limits.work = 100'000;
  const driver::Answer answer =
      driver::solve(varied, {.graph = graph, .budget = Bytes(30)}, request);
  REQUIRE(answer.outcome.plan.has_value());
  CHECK(answer.outcome.cost.duration == Ticks(5));
  CHECK(answer.outcome.bound.duration == Ticks(4));
  CHECK(answer.outcome.note.find("registered") != std::string::npos);
}

}  // namespace
}  // namespace lowtide::bench

// The portfolio, with parts of our own of the same traits.
#include "lowtide/driver/auto.h"

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"

#include "support/sketch.h"

namespace lowtide {
namespace {

using solve::Trait;
using solve::Traits;

// Works until it is stopped and finds nothing, or offers one sequence.
class Part final : public solve::Solver {
 public:
  Part(std::string_view name, solve::Traits traits, std::vector<OpId> sequence)
      : name_(name), traits_(traits), sequence_(std::move(sequence)) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "a part"; }
  solve::Traits traits() const override { return traits_; }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem&, solve::Context& context) const override {
    if (!sequence_.empty()) context.offer_sequence(sequence_);
    while (sequence_.empty() && !context.limits().spend()) {
    }
    return context.finish();
  }

 private:
  std::string_view name_;
  solve::Traits traits_;
  std::vector<OpId> sequence_;
};

// What op 0 makes is read last.
Graph late_reader() {
  return Sketch({10, 10, 10, 1})
      .op({}, {0})
      .op({}, {1})
      .op({1}, {2})
      .op({0, 2}, {3})
      .keep({3})
      .graph();
}

TEST_CASE("auto: a part that takes all it gets does not keep the others from their turn") {
  // Op 0 is computed twice, so that the plan is not proven optimal.
  const Graph graph = late_reader();
  solve::SolverTable table;
  table.add(std::make_unique<Part>("endless", Traits{Trait::constructive}, std::vector<OpId>()));
  table.add(std::make_unique<Part>("greedy", Traits{Trait::constructive},
                                   std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(driver::make_auto());
  const Problem problem{.graph = graph, .budget = Bytes(30)};
  for (const std::int64_t work : {3'000'000, 30'000'000}) {
    driver::Request request;
    request.limits.work = work;
    const driver::Answer answer = driver::solve(table, problem, request);
    CHECK(answer.outcome.found_by == "greedy");
    CHECK(answer.outcome.stopped_by == StopReason::work_limit);
    const auto& parts = answer.outcome.parts;
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].name == "endless");
    CHECK(parts[0].work > work / 2);
    CHECK(parts[0].plans == 0);
    CHECK(parts[1].name == "greedy");
    CHECK(parts[1].plans == 1);
    CHECK(parts[1].won == Ticks(0));
  }
}

TEST_CASE(
    "auto: a solver for tight budgets is asked where the quick ones have no plan, and only there") {
  const Graph graph = late_reader();
  const std::vector<OpId> over{OpId(0), OpId(1), OpId(2), OpId(3)};
  const std::vector<OpId> within{OpId(1), OpId(2), OpId(0), OpId(3)};
  for (const bool quick : {false, true}) {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("quick", Traits{Trait::constructive}, quick ? within : over));
    table.add(std::make_unique<Part>("deep", Traits{Trait::tight}, within));
    table.add(driver::make_auto());
    const Problem problem{.graph = graph, .budget = Bytes(21)};
    driver::Request request;
    request.limits.work = 3'000'000;
    const driver::Answer answer = driver::solve(table, problem, request);
    CHECK(answer.outcome.found_by == (quick ? "quick" : "deep"));
  }
}

TEST_CASE("auto: what each part won is told") {
  const Graph graph = late_reader();
  solve::SolverTable table;
  // Five ticks, then four, which is the bound.
  table.add(std::make_unique<Part>("first", Traits{Trait::constructive},
                                   std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(std::make_unique<Part>("second", Traits{Trait::constructive},
                                   std::vector{OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(driver::make_auto());
  driver::Request request;
  request.limits.work = 100'000;
  const driver::Answer answer =
      driver::solve(table, {.graph = graph, .budget = Bytes(30)}, request);
  const auto& parts = answer.outcome.parts;
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].plans == 1);
  CHECK(parts[0].won == Ticks(0));
  CHECK(parts[1].name == answer.outcome.found_by);
  CHECK(parts[1].plans == 1);
  CHECK(parts[1].won == Ticks(1));
}

TEST_CASE("auto: a guest is asked for its traits, and one without any is not") {
  const Graph graph = late_reader();
  const std::vector<OpId> within{OpId(1), OpId(2), OpId(0), OpId(3)};
  for (const Traits traits :
       {Traits{Trait::guest}, Traits{Trait::guest, Trait::external},
        Traits{Trait::guest, Trait::constructive}, Traits{Trait::guest, Trait::anytime}}) {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("guest", traits, within));
    table.add(driver::make_auto());
    driver::Request request;
    request.limits.work = 100'000;
    const driver::Answer answer =
        driver::solve(table, {.graph = graph, .budget = Bytes(21)}, request);
    CAPTURE(traits.words().size());
    const bool asked = traits.has(Trait::constructive) || traits.has(Trait::anytime);
    CHECK(answer.outcome.plan.has_value() == asked);
  }
}

}  // namespace
}  // namespace lowtide

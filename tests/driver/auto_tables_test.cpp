// The tables of `auto`: phases and recipes.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/auto/auto.h"
#include "lowtide/driver/auto/phases.h"
#include "lowtide/driver/auto/recipes.h"
#include "lowtide/driver/driver.h"
#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/by_work.h"
#include "support/part.h"

namespace lowtide {
namespace {

using driver::LaneTerms;
using solve::Trait;
using solve::Traits;

std::vector<LaneTerms> all_terms() {
  std::vector<LaneTerms> found;
  for (int bits = 0; bits < 32; ++bits)
    for (const double excess : {0.0, 0.2, 0.5, 50.0})
      found.push_back({.brief = (bits & 1) != 0,
                       .link = (bits & 2) != 0,
                       .has_plan = (bits & 4) != 0,
                       .free_order = (bits & 8) != 0,
                       .reordered = (bits & 16) != 0,
                       .excess = excess});
  return found;
}

TEST_CASE("auto's tables: each lane has recipes, and their options are options of the search") {
  const solve::SolverTable table = driver::all_solvers();
  const solve::Solver& search = *table.with(Trait::anytime).front();
  for (const LaneTerms& terms : all_terms()) {
    int suitable = 0, orders = 0;
    solve::Options options(search.options());
    for (const driver::Recipe& recipe : driver::recipes()) {
      if (!recipe.suits(terms)) continue;
      ++suitable;
      for (const auto& [name, value] : texts_of(recipe, terms)) options.set(name, value);
      CHECK(options.number("hot") > options.number("cold"));
    }
    for (const driver::OrderRecipe& recipe : driver::order_recipes()) {
      if (!recipe.suits(terms)) continue;
      ++orders;
      for (const auto& [name, value] : texts_of(recipe)) options.set(name, value);
    }
    CHECK(suitable > 0);
    CHECK(orders > 0);
    for (std::uint64_t turn = 0; turn < 8; ++turn)
      for (const auto& [name, value] : driver::search_options(turn, terms))
        options.set(name, value);
  }
}

TEST_CASE("auto's tables: every line is a switch and a number of its own") {
  const std::unique_ptr<solve::Solver> solver = driver::make_auto();
  std::set<std::string> names;
  for (const solve::OptionSpec& spec : solver->options()) {
    CHECK(names.insert(std::string(spec.name)).second);
    CHECK_FALSE(spec.usage.empty());
  }
  CHECK(names.size() ==
        2 * (driver::phases().size() + driver::recipes().size() + driver::order_recipes().size()));
  for (const driver::Phase& phase : driver::phases()) {
    CHECK(names.count(std::string(phase.name)) == 1);
    CHECK(names.count(std::string(phase.name) + "-share") == 1);
  }
}

TEST_CASE("auto's tables: without any one phase or recipe there is a plan that verifies") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("transformer", 150, 3);
  const std::unique_ptr<solve::Solver> solver = driver::make_auto();
  for (const solve::OptionSpec& spec : solver->options()) {
    if (spec.choices.empty()) continue;
    CAPTURE(spec.name);
    driver::Request request = by_work(20'000);
    request.options = {{std::string(spec.name), "off"}};
    const Problem problem{.graph = graph, .budget = Bytes(own_peak(graph).count() * 8 / 10)};
    const driver::Answer answer = driver::solve(table, problem, request);
    REQUIRE(answer.outcome.plan);
    CHECK(verify(problem, *answer.outcome.plan).ok);
  }
}

TEST_CASE("auto's tables: a disabled phase runs no solver, and a share is kept") {
  const Graph graph = late_reader();
  const std::vector<OpId> plan{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)};
  const auto ask = [&](std::vector<std::pair<std::string, std::string>> options) {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("bounds", Traits{Trait::proving}, plan));
    table.add(std::make_unique<Part>("endless", Traits{Trait::constructive}, std::vector<OpId>()));
    table.add(driver::make_auto());
    driver::Request request = by_work(100'000);
    request.options = std::move(options);
    return driver::solve(table, {.graph = graph, .budget = Bytes(30)}, request).outcome;
  };
  CHECK(ask({}).found_by == "bounds");
  const Outcome off = ask({{"bounds", "off"}, {"settle", "off"}, {"proofs", "off"}});
  CHECK(off.found_by == "auto");  // the given order as it is
  const Outcome share = ask({{"construct-share", "0.01"}, {"again", "off"}});
  const auto endless = std::ranges::find(share.parts, "endless", &PortfolioPart::name);
  REQUIRE(endless != share.parts.end());
  CHECK(endless->work <= 1'000 + Limits::kPollWork);
}

TEST_CASE("auto's tables: an option that a solver does not know is an error") {
  // A search that lacks the options of the recipes.
  class Bare final : public solve::Solver {
   public:
    std::string_view name() const override { return "bare"; }
    std::string_view summary() const override { return "without options"; }
    Traits traits() const override { return {Trait::anytime}; }
    solve::Support supports(const Problem&) const override { return {}; }
    Outcome solve(const Problem&, solve::Context& context) const override {
      return context.finish();
    }
  };
  const Graph graph = late_reader();
  solve::SolverTable table;
  table.add(std::make_unique<Bare>());
  table.add(driver::make_auto());
  CHECK_THROWS_AS(driver::solve(table, {.graph = graph, .budget = Bytes(30)}, by_work(10'000)),
                  InputError);
}

// Stands for a solver with one trait, offers one plan and writes down how it is asked.
class Recorder final : public solve::Solver {
 public:
  Recorder(Traits traits, std::vector<OpId> plan, std::vector<std::string>& calls)
      : traits_(traits), plan_(std::move(plan)), calls_(calls) {}
  std::string_view name() const override { return traits_.words().front(); }
  std::string_view summary() const override { return "a recorder"; }
  Traits traits() const override { return traits_; }
  std::span<const solve::OptionSpec> options() const override { return options_of(traits_); }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem& problem, solve::Context& context) const override {
    std::string call = std::string(name()) + " " +
                       std::to_string(*context.limits().settings().work) + " " +
                       std::string(to_string(problem.order));
    for (const std::string_view option : {"hot", "cold", "near", "rounds", "orders", "reorder"})
      if (!options().empty())
        if (const std::string* text = context.options().given(option)) call += " " + *text;
    calls_.push_back(std::move(call));
    if (!plan_.empty()) context.offer_sequence(plan_);
    while (!context.limits().spend()) {
    }
    return context.finish();
  }

 private:
  Traits traits_;
  std::vector<OpId> plan_;
  std::vector<std::string>& calls_;
};

std::vector<std::string> decisions(Order order) {
  const Graph graph = late_reader();
  const std::vector<OpId> plan{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)};
  std::vector<std::string> calls;
  solve::SolverTable table;
  table.add(std::make_unique<Recorder>(Traits{Trait::constructive}, plan, calls));
  table.add(std::make_unique<Recorder>(Traits{Trait::tight}, plan, calls));
  table.add(std::make_unique<Recorder>(Traits{Trait::anytime}, plan, calls));
  table.add(std::make_unique<Recorder>(Traits{Trait::proving}, std::vector<OpId>(), calls));
  table.add(driver::make_auto());
  driver::solve(table, {.graph = graph, .budget = Bytes(30), .order = order}, by_work(500'000));
  return calls;
}

// Whoever changes a table, a share or the choice sees here what that changes.
TEST_CASE("auto's tables: the decisions at 500,000 units of work") {
  const auto text = [](const std::vector<std::string>& calls) {
    std::string all;
    for (const std::string& call : calls) all += call + "\n";
    return all;
  };
  CHECK(text(decisions(Order::given)) ==
        "proving 10020 given\n"
        "constructive 20040 given\n"
        "proving 800 given\n"
        "anytime 20016 given 8 0.08 off 1 off 0\n"
        "anytime 20016 given 0.03 5e-04 on 2 off 0\n"
        "anytime 20016 given 8 0.08 off 1 off 0\n"
        "anytime 20016 given 0.2 0.003 off 2 off 0\n"
        "anytime 40032 given 0.01 2e-04 on 2 off 0\n"
        "anytime 40032 given 8 0.08 off 1 off 0\n"
        "anytime 40032 given 0.08 0.001 off 2 off 0\n"
        "anytime 40032 given 8 0.08 off 1 off 0\n"
        "proving 80064 given\n"
        "anytime 80064 given 8 0.08 off 1 off 0\n"
        "anytime 68820 given 0.03 5e-04 on 2 off 0\n");
  CHECK(text(decisions(Order::free)) ==
        "proving 10020 given\n"
        "constructive 20040 free\n"
        "proving 800 free\n"
        "anytime 20016 free 8 0.08 off 1 off 0\n"
        "anytime 20016 free 0.03 5e-04 on 2 on 0\n"
        "anytime 20016 free 8 0.08 off 1 off 0\n"
        "anytime 20016 free 0.2 0.003 off 2 on 0.3\n"
        "anytime 40032 free 0.01 2e-04 on 2 off 0\n"
        "anytime 40032 free 8 0.08 off 1 off 0\n"
        "anytime 40032 free 0.08 0.001 off 2 off 0\n"
        "anytime 40032 free 8 0.08 off 1 on 0.3\n"
        "proving 80064 free\n"
        "anytime 80064 free 8 0.08 off 1 off 0\n"
        "anytime 68820 free 0.03 5e-04 on 2 on 0\n");
}

}  // namespace
}  // namespace lowtide

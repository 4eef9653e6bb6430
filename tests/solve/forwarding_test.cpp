// Whoever stands in for a solver answers as that one does, whatever is asked.
#include "lowtide/solve/interface/forwarding.h"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "support/sketch.h"

namespace lowtide {
namespace {

// Answers nothing as Solver does by itself.
class Odd final : public solve::Solver {
 public:
  static constexpr solve::OptionSpec kSpecs[] = {
      {.name = "way", .usage = "which", .default_number = 3}};

  std::string_view name() const override { return "odd"; }
  std::string_view summary() const override { return "unlike any other"; }
  std::span<const solve::OptionSpec> options() const override { return kSpecs; }
  std::string missing(const std::function<bool()>& stop) const override {
    return stop && stop() ? "time" : "a library";
  }
  solve::Traits traits() const override { return {solve::Trait::tight, solve::Trait::external}; }
  solve::Support supports(const Problem& problem) const override {
    return problem.order == Order::given ? solve::Support{}
                                         : solve::Support::no("the order is free");
  }
  Outcome solve(const Problem&, solve::Context& context) const override {
    context.limits().spend(11);
    context.set_note("was here");
    return context.finish();
  }
};

TEST_CASE("forwarding: every call reaches the wrapped solver") {
  const Odd odd;
  const solve::Forwarding forwarding(odd);
  const solve::Solver& solver = forwarding;
  CHECK(solver.name() == "odd");
  CHECK(solver.summary() == "unlike any other");
  CHECK(solver.options().data() == odd.options().data());
  CHECK(solver.options().size() == 1);
  CHECK(solver.missing() == "a library");
  CHECK(solver.missing([] { return true; }) == "time");
  CHECK(solver.traits() == solve::Traits{solve::Trait::tight, solve::Trait::external});
  const Graph graph = Sketch({1}).op({}, {0}).graph();
  Problem problem{.graph = graph, .budget = Bytes(1), .order = Order::given};
  CHECK(solver.supports(problem).yes);
  problem.order = Order::free;
  CHECK(solver.supports(problem).reason == "the order is free");
  solve::Context context(problem, solver.name(), {});
  CHECK(solver.solve(problem, context).note == "was here");
  CHECK(context.limits().work() == 11);
}

// The names of the functions that a header declares with such a word before or behind them.
std::set<std::string> declared(const std::string& header, const std::string& pattern) {
  std::ifstream file(std::string(LOWTIDE_SOURCE_DIR) + "/src/lowtide/solve/" + header);
  std::stringstream text;
  text << file.rdbuf();
  const std::string source = text.str();
  const std::regex regex(pattern);
  std::set<std::string> names;
  for (std::sregex_iterator it(source.begin(), source.end(), regex), end; it != end; ++it)
    names.insert((*it)[1]);
  return names;
}

TEST_CASE("forwarding: every function of the interface is forwarded") {
  const auto asked = declared("interface/solver.h", R"(virtual [^~;{]*?(\w+)\()");
  const auto forwarded = declared("interface/forwarding.h", R"((\w+)\([^;{}]*\) const override)");
  CHECK(asked.size() >= 7);
  CHECK(asked == forwarded);
}

}  // namespace
}  // namespace lowtide

#include "solve/run_solver.h"

#include <doctest/doctest.h>

#include "support/judge.h"

namespace lowtide {

Outcome run_solver(const solve::Solver& solver, const Problem& problem, std::string_view options,
                   solve::ContextSettings settings) {
  settings.options = solve::Options(solver.options());
  while (!options.empty()) {
    const std::string_view word = options.substr(0, options.find(' '));
    options.remove_prefix(std::min(options.size(), word.size() + 1));
    const std::size_t equals = word.find('=');
    settings.options.set(word.substr(0, equals), word.substr(equals + 1));
  }
  solve::Context context(problem, solver.name(), std::move(settings));
  Outcome outcome = solver.solve(problem, context);
  if (outcome.plan) {
    const Verdict verdict = judge(problem, *outcome.plan);
    REQUIRE(verdict.ok);
    CHECK(verdict.cost == outcome.cost);
  }
  return outcome;
}

std::string computes(const Outcome& outcome) {
  if (!outcome.plan) return "none";
  std::string text;
  for (OpId op : sequence_of(*outcome.plan))
    text += (text.empty() ? "" : " ") + std::to_string(op.index());
  return text;
}

}  // namespace lowtide

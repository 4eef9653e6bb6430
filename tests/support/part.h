// Solvers of the tests' own, to stand under the names of a portfolio's parts.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/solve/interface/solver.h"

#include "support/sketch.h"

namespace lowtide {

// The options of the real solver with that trait, so that whoever asks a stand-in may set them.
inline std::span<const solve::OptionSpec> options_of(solve::Traits traits) {
  static const solve::SolverTable real = solve::make_solvers();
  for (const solve::Trait trait : {solve::Trait::anytime, solve::Trait::blocks})
    if (traits.has(trait)) return real.with(trait).front()->options();
  return {};
}

// Works until it is stopped and finds nothing, or offers one sequence.
class Part final : public solve::Solver {
 public:
  // `only`: it takes no problem of the other order.
  Part(std::string_view name, solve::Traits traits, std::vector<OpId> sequence,
       std::optional<Order> only = std::nullopt)
      : name_(name), traits_(traits), sequence_(std::move(sequence)), only_(only) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "a part"; }
  solve::Traits traits() const override { return traits_; }
  std::span<const solve::OptionSpec> options() const override { return options_of(traits_); }
  solve::Support supports(const Problem& problem) const override {
    if (only_ && *only_ != problem.order) return solve::Support::no("it is for the other order");
    return {};
  }
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
  std::optional<Order> only_;
};

// What op 0 makes is read last.
inline Graph late_reader() {
  return Sketch({10, 10, 10, 1})
      .op({}, {0})
      .op({}, {1})
      .op({1}, {2})
      .op({0, 2}, {3})
      .keep({3})
      .graph();
}

}  // namespace lowtide

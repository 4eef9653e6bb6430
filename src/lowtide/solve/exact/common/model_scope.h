// The problems that an exact model supports, and what its claims omit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::exact {

// The order of first computations that the solver fixes, in words for its claim.
std::string order_words(const Problem& problem, bool started);

// Supports problems without a machine and with at most `most` ops, since the size of the model
// (`model`: its name in the message) grows with their square.
Support small_enough(const Problem& problem, std::size_t most, std::string_view model);

// The problem for a model without ops in place: on a graph without in-place pairs, if the graph has
// any. Its plans are plans of the problem; its bounds are not bounds of the problem.
class ProblemWithoutInPlace {
 public:
  explicit ProblemWithoutInPlace(const Problem& problem);
  // Must not outlive this object, nor the original problem.
  Problem problem() const;
  // The addition to the model's name; empty if nothing is omitted.
  std::string words() const { return graph_ ? ", nothing in place" : ""; }

 private:
  const Problem& original_;
  std::optional<Graph> graph_;
};

}  // namespace lowtide::solve::exact

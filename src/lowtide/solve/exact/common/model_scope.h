// Which problems an exact model takes, and what its claims leave out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::exact {

// Which order of first computations such a solver keeps, in words for people.
std::string order_words(const Problem& problem, bool started);

// What such a solver takes: no links to a host, and not more ops than `most`, with whose square its
// `model` (a word for people) grows.
Support small_enough(const Problem& problem, std::size_t most, std::string_view model);

// The problem as a model has it that has no place for ops in place: on a graph without their pairs,
// where there are any. Its plans are plans of the problem, its bounds are not bounds of it.
class ProblemWithoutInPlace {
 public:
  explicit ProblemWithoutInPlace(const Problem& problem);
  // Must not outlive this object, nor the problem that it was made of.
  Problem problem() const;
  // To be added to the model's name: empty where nothing is left out.
  std::string words() const { return graph_ ? ", nothing in place" : ""; }

 private:
  const Problem& original_;
  std::optional<Graph> graph_;
};

}  // namespace lowtide::solve::exact

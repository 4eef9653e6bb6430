// Which problems an exact model takes, and what its claims leave out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::exact {

// Which order of first computations such a solver keeps, in words for people.
std::string order_words(const Problem& problem, bool started);

// What such a solver takes: no links to a host, and not more ops than `most`, with whose square its
// `model` (a word for people) grows.
Support small_enough(const Problem& problem, std::size_t most, std::string_view model);

}  // namespace lowtide::solve::exact

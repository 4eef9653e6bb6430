// The tables of the recipes by which the lanes of `auto` run the search.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/solve/interface/options.h"

namespace lowtide::driver {

using OptionTexts = std::vector<std::pair<std::string, std::string>>;

// The properties of a lane that decide which recipes suit it.
struct LaneTerms {
  bool brief = false;    // the work for each op is too little to cool down; otherwise it is long
  bool link = false;     // the problem has a link to the host
  bool has_plan = true;  // some plan keeps the budget
  bool free_order = false;
  bool reordered = false;  // the best plan does not follow the given order
  // (Duration of the best plan - bound) / its number of recomputations, in mean op times; 0 if
  // unknown.
  double excess = 0;
};

// An annealing schedule. Temperatures are in mean op times, or with `of_excess` in multiples of
// LaneTerms::excess.
struct Recipe {
  std::string_view name, summary;
  double hot, cold;  // temperature at the start and at the end
  int rounds;        // 1: so hot that the start plan does not matter
  bool near;         // begins at the start plan's marginal price of a byte; otherwise far below
  bool of_excess;
  double weight;  // relative to the other recipes that suit the lane
  bool (*suits)(const LaneTerms&);
};
std::span<const Recipe> recipes();

// How a lane changes a free order.
struct OrderRecipe {
  std::string_view name, summary;
  bool orders;     // first computations may move
  double reorder;  // share of the work in which the order alone is annealed first
  double weight;   // relative to the other recipes that suit the lane
  bool (*suits)(const LaneTerms&);
};
std::span<const OrderRecipe> order_recipes();

// The texts of the options of the solver with Trait::anytime (`search`).
OptionTexts texts_of(const Recipe& recipe, const LaneTerms& terms);
OptionTexts texts_of(const OrderRecipe& recipe);

// Options for short runs of the search outside of `auto`: turn 0, 1, ... takes the suitable recipes
// one after the other.
OptionTexts search_options(std::uint64_t turn, const LaneTerms& terms);

}  // namespace lowtide::driver

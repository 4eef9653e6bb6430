// How `auto` runs the search: the tables of its recipes.
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

// What a lane is for: decides which recipes suit it.
struct LaneTerms {
  bool brief = false;    // too little work for each op to cool down
  bool link = false;     // the problem has a link to the host
  bool has_plan = true;  // within the budget
  bool free_order = false;
  bool reordered = false;  // the best plan has another order than the given one
  // By how many mean op times a repeated computation of the best plan costs more than is proven; 0
  // if that is not known.
  double excess = 0;
};

// An annealing schedule. Temperatures are in mean op times, or with `of_excess` in multiples of
// LaneTerms::excess.
struct Recipe {
  std::string_view name, summary;
  double hot, cold;  // temperature at the start and at the end
  int rounds;        // 1: forgets its start
  bool near;         // begins at the price of a byte in its start; else far below it
  bool of_excess;
  double weight;  // against the others that suit the lane
  bool (*suits)(const LaneTerms&);
};
std::span<const Recipe> recipes();

// What a lane makes of a free order.
struct OrderRecipe {
  std::string_view name, summary;
  bool orders;     // first computations may move
  double reorder;  // share of the work in which the order alone is annealed first
  double weight;   // against the others that suit the lane
  bool (*suits)(const LaneTerms&);
};
std::span<const OrderRecipe> order_recipes();

// The texts of the options of the solver with Trait::anytime (`search`).
OptionTexts texts_of(const Recipe& recipe, const LaneTerms& terms);
OptionTexts texts_of(const OrderRecipe& recipe);

// For short runs from a plan, outside of `auto`: the recipes that suit them, one after the other.
OptionTexts search_options(std::uint64_t turn, const LaneTerms& terms);

}  // namespace lowtide::driver

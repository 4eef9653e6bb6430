#include "lowtide/driver/auto/recipes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace lowtide::driver {

namespace {

// From this excess on (LaneTerms) the best plan is far from the bound, and the gain of one change
// is of the order of the excess.
constexpr double kFar = 0.1, kFarBrief = 0.3;
constexpr double kHottest = 10;  // the highest temperature of a recipe, in mean op times

using T = LaneTerms;

// Temperatures: docs/why/search.md, "How auto divides the time".
constexpr std::array<Recipe, 11> kRecipes = {{
    {"cool", "low temperature, for long lanes", .03, .0005, 2, true, false, 1,
     [](const T& t) { return !t.brief && !t.link; }},
    {"warm", "high temperature, for long lanes", .2, .003, 2, false, false, 1,
     [](const T& t) { return !t.brief && !t.link; }},
    {"cold", "very low temperature, for long and brief lanes", .01, .0002, 2, true, false, 1,
     [](const T& t) { return !t.link; }},
    {"mild", "medium temperature, for long lanes", .08, .001, 2, false, false, 1,
     [](const T& t) { return !t.brief && !t.link; }},
    {"frozen", "lowest temperature, for brief lanes", .003, .0001, 2, false, false, 1,
     [](const T& t) { return t.brief && !t.link; }},
    {"afresh", "forgets its start plan, for long lanes, if the best plan is near the bound", 1,
     .0005, 1, false, false, 1.3,
     [](const T& t) { return !t.brief && !t.link && t.excess < kFar; }},
    {"far", "temperature by the excess, for long lanes, if the best plan is far from the bound", 8,
     .08, 1, false, true, 4, [](const T& t) { return !t.brief && !t.link && t.excess >= kFar; }},
    {"far-brief",
     "temperature by the excess, for brief lanes, if the best plan is far from the bound", 4, .4, 1,
     false, true, 2, [](const T& t) { return t.brief && !t.link && t.excess >= kFarBrief; }},
    {"link-warm", "medium temperature, for problems with a link", .1, .0005, 2, true, false, 1,
     [](const T& t) { return t.link; }},
    {"link-hot", "high temperature, for problems with a link", .3, .001, 2, false, false, 1,
     [](const T& t) { return t.link; }},
    {"repair", "very high temperature, while there is no plan", 10, .1, 2, false, false, 1,
     [](const T& t) { return !t.has_plan; }},
}};

// As long as the best plan has the given order, most lanes keep it: the search space is smaller.
// While no plan keeps the budget, lanes change the order, since the given one may allow none.
constexpr std::array<OrderRecipe, 4> kOrderRecipes = {{
    {"keep", "keep the given order", false, 0, 4,
     [](const T& t) { return !t.free_order || (t.has_plan && !t.reordered); }},
    {"keep-new", "keep the order of the best plan, if it is not the given one", false, 0, 1,
     [](const T& t) { return t.free_order && t.reordered; }},
    {"shift", "shift first computations as well", true, 0, 1,
     [](const T& t) { return t.free_order; }},
    {"reorder", "anneal the order alone first", true, .3, 1,
     [](const T& t) { return t.free_order; }},
}};

// In the form in which options are parsed, independent of the locale.
std::string text_of(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace

std::span<const Recipe> recipes() { return kRecipes; }
std::span<const OrderRecipe> order_recipes() { return kOrderRecipes; }

OptionTexts texts_of(const Recipe& recipe, const LaneTerms& terms) {
  const double unit = recipe.of_excess ? std::min(terms.excess, kHottest / recipe.hot) : 1;
  return {{"hot", text_of(unit * recipe.hot)},
          {"cold", text_of(unit * recipe.cold)},
          {"rounds", std::to_string(recipe.rounds)},
          {"near", recipe.near ? "on" : "off"}};
}

OptionTexts texts_of(const OrderRecipe& recipe) {
  return {{"orders", recipe.orders ? "on" : "off"}, {"reorder", text_of(recipe.reorder)}};
}

OptionTexts search_options(std::uint64_t turn, const LaneTerms& terms) {
  std::vector<const Recipe*> suitable;
  for (const Recipe& recipe : kRecipes)
    if (recipe.suits(terms) && recipe.rounds > 1) suitable.push_back(&recipe);
  OptionTexts texts = texts_of(*suitable[turn % suitable.size()], terms);
  std::vector<const OrderRecipe*> orders;
  for (const OrderRecipe& recipe : kOrderRecipes)
    if (recipe.orders) orders.push_back(&recipe);
  std::ranges::move(texts_of(*orders[turn % orders.size()]), std::back_inserter(texts));
  return texts;
}

}  // namespace lowtide::driver

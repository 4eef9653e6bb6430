#include "lowtide/driver/auto/recipes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace lowtide::driver {

namespace {

// Where a repeated computation costs that much more than is proven, the best plan is far from what
// can be, and what one change wins is of the order of that excess.
constexpr double kFar = 0.1, kFarBrief = 0.3;
constexpr double kHottest = 10;  // mean op times

using T = LaneTerms;

// Temperatures: docs/why/search.md, "How auto divides the time".
constexpr std::array<Recipe, 11> kRecipes = {{
    {"cool", "long lanes", .03, .0005, 2, true, false, 1,
     [](const T& t) { return !t.brief && !t.link; }},
    {"warm", "long lanes", .2, .003, 2, false, false, 1,
     [](const T& t) { return !t.brief && !t.link; }},
    {"cold", "any lane without a link", .01, .0002, 2, true, false, 1,
     [](const T& t) { return !t.link; }},
    {"mild", "long lanes", .08, .001, 2, false, false, 1,
     [](const T& t) { return !t.brief && !t.link; }},
    {"frozen", "brief lanes", .003, .0001, 2, false, false, 1,
     [](const T& t) { return t.brief && !t.link; }},
    {"afresh", "long lanes, which forget their start", 1, .0005, 1, false, false, 1.3,
     [](const T& t) { return !t.brief && !t.link && t.excess < kFar; }},
    {"far", "long lanes, where the best plan is far from the bound", 8, .08, 1, false, true, 4,
     [](const T& t) { return !t.brief && !t.link && t.excess >= kFar; }},
    {"far-brief", "brief lanes, where the best plan is far from the bound", 4, .4, 1, false, true,
     2, [](const T& t) { return t.brief && !t.link && t.excess >= kFarBrief; }},
    {"link-warm", "lanes with a link", .1, .0005, 2, true, false, 1,
     [](const T& t) { return t.link; }},
    {"link-hot", "lanes with a link", .3, .001, 2, false, false, 1,
     [](const T& t) { return t.link; }},
    {"repair", "any lane, while there is no plan", 10, .1, 2, false, false, 1,
     [](const T& t) { return !t.has_plan; }},
}};

// As long as no other order is ahead, most lanes keep the given one, in which there is less to
// choose. Without a plan that keeps the budget, it may be the order that stands in the way.
constexpr std::array<OrderRecipe, 4> kOrderRecipes = {{
    {"keep", "keeps the given order", false, 0, 4,
     [](const T& t) { return !t.free_order || (t.has_plan && !t.reordered); }},
    {"keep-new", "keeps the order of the best plan, where that is another one", false, 0, 1,
     [](const T& t) { return t.free_order && t.reordered; }},
    {"shift", "shifts first computations as well", true, 0, 1,
     [](const T& t) { return t.free_order; }},
    {"reorder", "anneals the order alone at first", true, .3, 1,
     [](const T& t) { return t.free_order; }},
}};

// As options are read, whatever the locale.
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

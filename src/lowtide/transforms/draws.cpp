// The kinds are listed here, because graphs lack the tag with which PyTorch marks such ops.
#include "lowtide/transforms/draws.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

namespace lowtide {

namespace {

// PyTorch's kinds without namespace and without the underscore of in-place variants.
constexpr std::array<std::string_view, 23> kDraws = {
    "bernoulli",       "binomial",          "cauchy",    "dropout",    "alpha_dropout",
    "feature_dropout", "exponential",       "geometric", "log_normal", "multinomial",
    "normal",          "normal_functional", "poisson",   "rand",       "rand_like",
    "randint",         "randint_like",      "randn",     "randn_like", "random",
    "randperm",        "rrelu_with_noise",  "uniform"};
constexpr std::array<std::string_view, 2> kLowtideDraws = {"lowtide.dropout_mask",
                                                           "lowtide.random_state"};

bool is_above_zero(const Literal& literal) {
  if (const auto* number = std::get_if<double>(&literal.value)) return *number > 0;
  if (const auto* number = std::get_if<std::int64_t>(&literal.value)) return *number > 0;
  return false;
}

// Attention and similar ops draw if their dropout probability is above zero. Their backwards draw
// nothing: they use the numbers of the forward.
bool drops_out(const Op& op) {
  return op.kind.find("backward") == std::string::npos &&
         std::ranges::any_of(op.arguments, [](const Argument& argument) {
           return argument.name == "dropout_p" && is_above_zero(argument.value);
         });
}

}  // namespace

bool draws(const Op& op) {
  if (std::ranges::find(kLowtideDraws, op.kind) != kLowtideDraws.end()) return true;
  std::string_view name = op.kind;
  name.remove_prefix(std::min(name.size(), name.find('.') + 1));
  if (name.starts_with("native_") && !name.ends_with("_backward")) name.remove_prefix(7);
  if (name.ends_with('_')) name.remove_suffix(1);
  return std::ranges::find(kDraws, name) != kDraws.end() || drops_out(op);
}

}  // namespace lowtide

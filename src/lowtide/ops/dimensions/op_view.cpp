// Look-ups only.
#include "lowtide/ops/dimensions/op_view.h"

#include <algorithm>

#include "lowtide/ops/dimensions/axis.h"

namespace lowtide::dimensions {

namespace {

const Extents kNoExtents;

}  // namespace

Item OpView::operand(std::string_view argument, std::int64_t index) const {
  for (std::size_t i = 0; i < op_.operands.size(); ++i)
    if (op_.operands[i].argument == argument && op_.operands[i].index == index) return i;
  return std::nullopt;
}

Item OpView::result(std::int64_t number, std::string_view name) const {
  for (std::size_t i = 0; i < op_.results.size(); ++i) {
    const Operand& made = op_.results[i];
    if (made.index == number || (made.index < 0 && !name.empty() && made.argument == name))
      return i;
    if (made.index < 0 && made.argument.empty() && number == 0) return i;
  }
  return std::nullopt;
}

const Extents& OpView::extents(Item operand) const {
  return operand && *operand < op_.operands.size() ? op_.operands[*operand].shape : kNoExtents;
}

const Extents& OpView::extents_made(Item result) const {
  return result && *result < op_.results.size() ? op_.results[*result].shape : kNoExtents;
}

const Literal* OpView::literal(std::string_view argument) const {
  const auto found = std::ranges::find(op_.arguments, argument, &Argument::name);
  return found == op_.arguments.end() ? nullptr : &found->value;
}

std::optional<std::int64_t> OpView::integer(std::string_view argument) const {
  const Literal* value = literal(argument);
  const auto* number = value ? std::get_if<std::int64_t>(&value->value) : nullptr;
  if (number == nullptr) return std::nullopt;
  return *number;
}

bool OpView::is_true(std::string_view argument) const {
  const Literal* value = literal(argument);
  return value != nullptr && *value == Literal{true};
}

bool OpView::is_false(std::string_view argument) const {
  const Literal* value = literal(argument);
  return value != nullptr && *value == Literal{false};
}

bool OpView::is_number(std::string_view argument, double number) const {
  const Literal* value = literal(argument);
  if (value == nullptr) return false;
  if (const auto* whole = std::get_if<std::int64_t>(&value->value))
    return static_cast<double>(*whole) == number;
  const auto* real = std::get_if<double>(&value->value);
  return real != nullptr && *real == number;
}

std::optional<Extents> OpView::integers(std::string_view argument) const {
  if (const auto one = integer(argument)) return Extents{*one};
  const Literal* value = literal(argument);
  const auto* list = value ? std::get_if<Literal::List>(&value->value) : nullptr;
  if (list == nullptr) return std::nullopt;
  Extents numbers;
  for (const Literal& item : *list) {
    const auto* number = std::get_if<std::int64_t>(&item.value);
    if (number == nullptr) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::string_view> OpView::text(std::string_view argument) const {
  const Literal* value = literal(argument);
  const auto* words = value ? std::get_if<std::string>(&value->value) : nullptr;
  if (words == nullptr) return std::nullopt;
  return *words;
}

bool OpView::is_given(std::string_view argument) const {
  const Literal* value = literal(argument);
  return has(argument) ||
         (value != nullptr && !std::holds_alternative<std::monostate>(value->value));
}

std::optional<std::int64_t> wrapped(std::int64_t dim, std::int64_t rank) {
  if (dim < -rank || dim >= rank) return std::nullopt;
  return dim < 0 ? dim + rank : dim;
}

void Draft::along(std::vector<Along>& list, Item item, std::int64_t dim, const Extents& extents) {
  const auto at = wrapped(dim, std::ssize(extents));
  if (!item || !at) {
    good_ = false;
    return;
  }
  const std::int64_t extent = extents[static_cast<std::size_t>(*at)];
  if (extent_ >= 0 && extent != extent_ && !joined_ && !letter_.crops) good_ = false;
  shortest_ = extent_ < 0 ? extent : std::min(shortest_, extent);
  extent_ = std::max(extent_, extent);
  list.push_back({*item, static_cast<std::size_t>(*at)});
}

Draft& Draft::in(Item operand, std::int64_t dim) {
  along(letter_.operands, operand, dim, op_.extents(operand));
  return *this;
}

Draft& Draft::in_any(Item operand, std::int64_t dim) { return operand ? in(operand, dim) : *this; }

Draft& Draft::in_broadcast(Item operand, std::int64_t dim, std::int64_t rank) {
  if (!operand) return *this;
  const Extents& extents = op_.extents(operand);
  const std::int64_t at = dim - (rank - std::ssize(extents));
  if (at < 0 || at >= std::ssize(extents)) return *this;
  if (extents[static_cast<std::size_t>(at)] == 1) return *this;
  return in(operand, at);
}

Draft& Draft::out(Item result, std::int64_t dim) {
  if (result) along(letter_.results, result, dim, op_.extents_made(result));
  return *this;
}

Draft& Draft::others(Unnamed what) {
  others_ = what;
  return *this;
}

Draft& Draft::other(Item result, Unnamed what) {
  if (result) each_.emplace_back(*result, what);
  return *this;
}

Draft& Draft::weight(Weight weight) {
  letter_.weight = weight;
  return *this;
}

Draft& Draft::joined() {
  joined_ = true;
  return *this;
}

Draft& Draft::cropped() {
  letter_.crops = true;
  return *this;
}

Draft& Draft::block(std::int64_t indices) {
  letter_.block = indices;
  return *this;
}

void Draft::add_to(Rule& rule) {
  // One index alone cannot be cut.
  if (!good_ || extent_ < 2 || (letter_.crops && !may_crop(extent_, shortest_))) return;
  letter_.unnamed.assign(op_.result_count(), others_.value_or(Unnamed::same));
  for (const auto& [result, what] : each_) letter_.unnamed[result] = what;
  for (std::size_t r = 0; r < op_.result_count(); ++r) {
    const bool said =
        others_ || std::ranges::find(letter_.results, r, &Along::item) != letter_.results.end() ||
        std::ranges::find(each_, r, &std::pair<std::size_t, Unnamed>::first) != each_.end();
    if (!said) return;
  }
  rule.letters.push_back(std::move(letter_));
}

}  // namespace lowtide::dimensions

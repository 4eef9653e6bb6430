// Lookup in tables of a handful of rows.
#include "lowtide/solve/options.h"

#include <algorithm>
#include <charconv>

#include "lowtide/base/error.h"

namespace lowtide {

namespace {
std::string format_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}
}  // namespace

void Options::set(std::string_view name, std::string_view value) {
  const auto known = std::find_if(specs_.begin(), specs_.end(),
                                  [&](const OptionSpec& s) { return s.name == name; });
  const std::string place = "option " + std::string(name);
  if (known == specs_.end()) {
    std::string names;
    for (const OptionSpec& s : specs_) names += (names.empty() ? "" : ", ") + std::string(s.name);
    throw InputError(place, names.empty() ? "this solver has no options"
                                          : "there is none of that name; there are: " + names);
  }
  if (!known->choices.empty()) {
    if (std::find(known->choices.begin(), known->choices.end(), value) == known->choices.end()) {
      std::string words;
      for (std::string_view c : known->choices)
        words += (words.empty() ? "" : ", ") + std::string(c);
      throw InputError(place, "\"" + std::string(value) + "\" is not one of " + words);
    }
  } else {
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() ||
        !(number >= known->low && number <= known->high))
      throw InputError(place, "\"" + std::string(value) + "\" is not a number from " +
                                  format_number(known->low) + " to " + format_number(known->high));
  }
  values_.emplace_back(name, value);
}

const std::string* Options::given(std::string_view name) const {
  for (auto it = values_.rbegin(); it != values_.rend(); ++it)
    if (it->first == name) return &it->second;
  return nullptr;
}

const OptionSpec& Options::spec(std::string_view name) const {
  const auto known = std::find_if(specs_.begin(), specs_.end(),
                                  [&](const OptionSpec& s) { return s.name == name; });
  check(known != specs_.end(), "a solver asks for an option that its table lacks");
  return *known;
}

double Options::number(std::string_view name) const {
  const OptionSpec& known = spec(name);
  const std::string* text = given(name);
  if (text == nullptr) return known.default_number;
  double number = 0;
  std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

std::string_view Options::choice(std::string_view name) const {
  const OptionSpec& known = spec(name);
  const std::string* text = given(name);
  return text == nullptr ? known.default_choice : std::string_view(*text);
}

}  // namespace lowtide

// Look-up in tables of a few rows.
#include "lowtide/solve/interface/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fnmatch.h>

#include "lowtide/base/error.h"

namespace lowtide::solve {

namespace {
std::string format_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Splits "OP:NUMBER" at its last colon, since names may contain others. Without OP: all ops.
struct OfOps {
  std::optional<std::string> ops;
  std::string_view number;
};
OfOps split_ops(std::string_view value) {
  const std::size_t colon = value.rfind(':');
  if (colon == std::string_view::npos) return {.ops = std::nullopt, .number = value};
  return {.ops = std::string(value.substr(0, colon)), .number = value.substr(colon + 1)};
}

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// "#" and an index; otherwise the ops of that name; otherwise those whose names match the pattern.
std::vector<OpId> find_ops(const Graph& graph, const std::string& ops) {
  std::vector<OpId> named, fitting;
  const auto index =
      ops.starts_with('#') ? parse<std::size_t>(std::string_view(ops).substr(1)) : std::nullopt;
  if (index && *index < graph.op_count()) return {OpId(*index)};
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const std::string& name = graph.op(OpId(i)).name;
    if (name == ops) named.emplace_back(i);
    if (fnmatch(ops.c_str(), name.c_str(), 0) == 0) fitting.emplace_back(i);
  }
  return named.empty() ? fitting : named;
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
    const auto given = known->several ? words_of(value) : std::vector{value};
    for (const std::string_view word : given) {
      if (std::ranges::count(known->choices, word) > 0) {
        if (std::ranges::count(given, word) == 1) continue;
        throw InputError(place, "\"" + std::string(word) + "\" is listed twice");
      }
      std::string words;
      for (std::string_view c : known->choices)
        words += (words.empty() ? "" : ", ") + std::string(c);
      throw InputError(place, "\"" + std::string(word) + "\" is not one of " + words);
    }
  } else {
    const auto number = parse<double>(known->of_ops ? split_ops(value).number : value);
    const bool whole = !known->whole || (number && *number == std::floor(*number));
    if (!number || !whole || !(*number >= known->low && *number <= known->high))
      throw InputError(place, "\"" + std::string(value) + "\" is not a " +
                                  (known->whole ? "whole " : "") + "number from " +
                                  format_number(known->low) + " to " + format_number(known->high) +
                                  (known->of_ops ? ", nor an op, a colon and such a number" : ""));
  }
  values_.emplace_back(name, value);
}

const std::string* Options::given(std::string_view name) const {
  const bool of_ops = spec(name).of_ops;
  for (auto it = values_.rbegin(); it != values_.rend(); ++it)
    if (it->first == name && !(of_ops && split_ops(it->second).ops)) return &it->second;
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
  return *parse<double>(*text);
}

std::vector<double> Options::numbers(std::string_view name, const Graph& graph) const {
  std::vector<double> result(graph.op_count(), number(name));
  for (const auto& [set, value] : values_) {
    const OfOps given = split_ops(value);
    if (set != name || !given.ops) continue;
    const std::vector<OpId> ops = find_ops(graph, *given.ops);
    for (const OpId op : ops) result[op.index()] = *parse<double>(given.number);
    if (ops.empty() && graph.op_count() > 0)
      throw InputError("option " + std::string(name),
                       "no op of the graph is \"" + *given.ops +
                           "\"; write a name, in which * and ? match anything, or # and an index");
  }
  return result;
}

std::string_view Options::choice(std::string_view name) const {
  const OptionSpec& known = spec(name);
  const std::string* text = given(name);
  return text == nullptr ? known.default_choice : std::string_view(*text);
}

std::vector<std::string_view> Options::several(std::string_view name) const {
  return words_of(choice(name));
}

}  // namespace lowtide::solve

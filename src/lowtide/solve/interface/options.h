// The options of a solver: one table from which flags, keyword arguments, documentation and the
// ranges of fuzzers are derived.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::solve {

// A number in [low, high], or, if `choices` is not empty, one of those words; with `several`, a
// list of distinct words, separated by commas.
struct OptionSpec {
  std::string_view name;
  std::string_view usage;
  double default_number = 0, low = 0, high = 0;
  bool whole = false;   // an integer
  bool of_ops = false;  // a number that may differ for single ops, as "OP:NUMBER"
  std::string_view default_choice = {};
  std::vector<std::string_view> choices = {};
  bool several = false;
};

// A component of a solver that can be switched off, to measure its effect.
inline OptionSpec switch_option(std::string_view name, std::string_view usage) {
  return {.name = name, .usage = usage, .default_choice = "on", .choices = {"on", "off"}};
}

// The values for one solver. Only those that differ from the defaults need be set.
class Options {
 public:
  Options() = default;
  explicit Options(std::span<const OptionSpec> specs) : specs_(specs) {}

  // Throws InputError for an unknown name or a value out of its range. The last value of a name
  // counts; of an option `of_ops`, the last that matches an op.
  void set(std::string_view name, std::string_view value);

  double number(std::string_view name) const;
  // For each op, the value of an option `of_ops`: that of the op, or else the common one. In
  // "OP:NUMBER", OP is "#" and an index, or a name with the wildcards * and ?. Throws InputError
  // for an op that the graph lacks.
  std::vector<double> numbers(std::string_view name, const Graph& graph) const;
  std::string_view choice(std::string_view name) const;
  std::vector<std::string_view> several(
      std::string_view name) const;  // for an option with `several`
  // The value as it was set; null if it was not.
  const std::string* given(std::string_view name) const;
  bool on(std::string_view name) const { return choice(name) == "on"; }  // of a switch_option

 private:
  const OptionSpec& spec(std::string_view name) const;

  std::span<const OptionSpec> specs_;
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace lowtide::solve

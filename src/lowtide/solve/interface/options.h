// The options of a solver: one table from which flags, keyword arguments, documentation and the
// ranges of the fuzzers are made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::solve {

// A number in [low, high], or, if `choices` is not empty, one of those words; with `several`, some
// of them, each once, between commas.
struct OptionSpec {
  std::string_view name;
  std::string_view usage;
  double default_number = 0, low = 0, high = 0;
  bool whole = false;   // a whole number
  bool of_ops = false;  // a number that some ops may have apart, as "OP:NUMBER"
  std::string_view default_choice = {};
  std::vector<std::string_view> choices = {};
  bool several = false;
};

// A part of a solver that can be left out, to see what it is worth.
inline OptionSpec switch_option(std::string_view name, std::string_view usage) {
  return {.name = name, .usage = usage, .default_choice = "on", .choices = {"on", "off"}};
}

// Values for one solver. Only what differs from the defaults need be set.
class Options {
 public:
  Options() = default;
  explicit Options(std::span<const OptionSpec> specs) : specs_(specs) {}

  // Throws InputError for a name that the table lacks or a value out of its range. The last value
  // of a name holds; of an option `of_ops`, the last that an op matches.
  void set(std::string_view name, std::string_view value);

  double number(std::string_view name) const;
  // For each op, of an option `of_ops`: what was set for it, or else for all. In "OP:NUMBER", OP is
  // "#" and an index, or a name in which * and ? stand for what they do in a shell. Throws
  // InputError for one that the graph lacks.
  std::vector<double> numbers(std::string_view name, const Graph& graph) const;
  std::string_view choice(std::string_view name) const;
  std::vector<std::string_view> several(
      std::string_view name) const;  // of an option with `several`
  // As it was set; null if it was not.
  const std::string* given(std::string_view name) const;
  bool on(std::string_view name) const { return choice(name) == "on"; }  // of a switch_option

 private:
  const OptionSpec& spec(std::string_view name) const;

  std::span<const OptionSpec> specs_;
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace lowtide::solve

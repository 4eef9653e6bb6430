// The techniques that a plan may use to keep its budget.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

// Reordering is no technique: the problem's order allows it or not. Techniques that change the
// graph may change bits, so they are used only if they are named.
struct Techniques {
  bool recompute = true;  // otherwise every op runs once
  bool in_place = true;   // ops run in place, by the graph's in-place pairs
  bool offload = true;    // over the problem's machine, if it has one
  bool split = false;     // regions run in parts
  bool hoist = false;     // the backward runs within the forward
  bool substitute = false;

  static constexpr Techniques all() { return {true, true, true, true, true, true}; }
  static constexpr Techniques none() { return {false, false, false, false, false, false}; }
  bool operator==(const Techniques&) const = default;
};

// Parses a comma-separated list: recompute, in_place, offload, split, hoist, substitute; "default"
// (the first three with a machine, the first two without); "all". Throws InputError (place:
// techniques "LIST") for other words, for an empty list, and for "offload" without a machine.
Techniques parse_techniques(std::string_view list, bool has_machine);

// The names of the techniques in the set, in the order above.
std::vector<std::string_view> names_of(const Techniques& techniques);
// Enables the technique of that name; returns false for an unknown name.
bool add_technique(Techniques& techniques, std::string_view name);
bool has_technique(const Techniques& techniques, std::string_view name);

}  // namespace lowtide

// What a plan may use to fit into its budget.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

// A reordering is no technique: the problem's order says whether there may be one. What changes the
// graph may change bits too, so it is used only where it is asked for by name.
struct Techniques {
  bool recompute = true;  // without it every op runs once
  bool in_place = true;   // ops write in place of inputs that the graph pairs with outputs
  bool offload = true;    // over the problem's machine; without one there is nothing to use
  bool split = false;     // regions run in parts
  bool hoist = false;     // the backward runs in one with the forward
  bool substitute = false;

  static constexpr Techniques all() { return {true, true, true, true, true, true}; }
  static constexpr Techniques none() { return {false, false, false, false, false, false}; }
  bool operator==(const Techniques&) const = default;
};

// A list with commas, which is the whole set: recompute, in_place, offload, split, hoist,
// substitute; "default", for the first three where there is a machine and the first two where there
// is none; "all". InputError (place: techniques "LIST") for other words, none at all, and for
// "offload" where there is no machine.
Techniques parse_techniques(std::string_view list, bool has_machine);

// The names of those in the set, in the order above.
std::vector<std::string_view> names_of(const Techniques& techniques);
// Turns the technique of that name on; false for a name that is not known.
bool add_technique(Techniques& techniques, std::string_view name);
bool has_technique(const Techniques& techniques, std::string_view name);

}  // namespace lowtide

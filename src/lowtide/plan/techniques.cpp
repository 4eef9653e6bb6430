// One table of names.
#include "lowtide/plan/techniques.h"

#include <array>

#include "lowtide/base/decimal.h"
#include "lowtide/base/error.h"

namespace lowtide {

namespace {

struct Named {
  std::string_view name;
  bool Techniques::*member;
};
constexpr std::array<Named, 6> kNamed = {{{"recompute", &Techniques::recompute},
                                          {"in_place", &Techniques::in_place},
                                          {"offload", &Techniques::offload},
                                          {"split", &Techniques::split},
                                          {"hoist", &Techniques::hoist},
                                          {"substitute", &Techniques::substitute}}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\v\f\r";
  const std::size_t first = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
}

}  // namespace

std::vector<std::string_view> names_of(const Techniques& techniques) {
  std::vector<std::string_view> names;
  for (const Named& known : kNamed)
    if (techniques.*known.member) names.push_back(known.name);
  return names;
}

bool add_technique(Techniques& techniques, std::string_view name) {
  for (const Named& known : kNamed)
    if (known.name == name) return techniques.*known.member = true;
  return false;
}

bool has_technique(const Techniques& techniques, std::string_view name) {
  for (const Named& known : kNamed)
    if (known.name == name) return techniques.*known.member;
  return false;
}

Techniques parse_techniques(std::string_view list, bool has_machine) {
  const std::string place = "techniques \"" + std::string(list) + "\"";
  const auto refuse = [&](const std::string& reason) {
    throw InputError(place, reason +
                                "; write a list such as recompute,in_place of: recompute, "
                                "in_place, offload, split, hoist, substitute, default, all");
  };
  const bool none = without_spaces(list).empty();
  Techniques techniques = Techniques::none();
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string_view given = trimmed(list.substr(at, end - at));
    const std::string word = without_spaces(given);
    at = end + 1;
    if (word == "all") {
      techniques = Techniques::all();
    } else if (word == "default") {
      techniques.recompute = techniques.in_place = true;
      techniques.offload = techniques.offload || has_machine;
    } else if (word.empty()) {
      refuse(none ? "names none" : "has an empty place between its commas");
    } else if (word.size() != given.size() || !add_technique(techniques, word)) {
      refuse("\"" + std::string(given) + "\" is not known");
    } else if (word == "offload" && !has_machine) {
      throw InputError(place, "offload needs a link to the host: name one with device or link");
    }
  }
  return techniques;
}

}  // namespace lowtide

// The names of traits.
#include "lowtide/solve/interface/traits.h"

namespace lowtide::solve {

std::string_view to_string(Trait trait) {
  switch (trait) {
    case Trait::constructive: return "constructive";
    case Trait::tight: return "tight";
    case Trait::anytime: return "anytime";
    case Trait::proving: return "proving";
    case Trait::transfers: return "transfers";
    case Trait::external: return "external";
    case Trait::portfolio: return "portfolio";
    case Trait::transforms: return "transforms";
    case Trait::blocks: return "blocks";
    case Trait::guest: return "guest";
  }
  return "";
}

std::optional<Trait> trait_of(std::string_view word) {
  for (const Trait trait : kTraits)
    if (to_string(trait) == word) return trait;
  return std::nullopt;
}

std::vector<std::string_view> Traits::words() const {
  std::vector<std::string_view> words;
  for (const Trait trait : kTraits)
    if (has(trait)) words.push_back(to_string(trait));
  return words;
}

}  // namespace lowtide::solve

// Traits of solvers. Other code selects solvers from the table by trait, not by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

namespace lowtide::solve {

enum class Trait : std::uint8_t {
  constructive,  // builds a plan from nothing, on most graphs in milliseconds
  tight,         // for tight budgets: recomputes far more, in far less memory
  anytime,       // improves given plans as long as the limits allow
  proving,       // raises bounds that hold for every plan of the problem
  transfers,     // plans copies to the host and back, so it supports tensors at home on the host
  external,    // an engine of other people does the work, in a process of its own: it takes tenths
               // of a second to begin, and its word is believed only until a plan beats it
  portfolio,   // runs the other solvers of its table
  transforms,  // changes the graph if allowed: splits of regions, hoists
  blocks,      // plans a graph as blocks: for large graphs, and for repeated blocks
  guest,       // a registered solver; its bounds count like those of an engine
};

// In the order above.
constexpr std::initializer_list<Trait> kTraits = {
    Trait::constructive, Trait::tight,     Trait::anytime,    Trait::proving, Trait::transfers,
    Trait::external,     Trait::portfolio, Trait::transforms, Trait::blocks,  Trait::guest};

std::string_view to_string(Trait trait);
std::optional<Trait> trait_of(std::string_view word);  // the inverse

// A set of traits.
class Traits {
 public:
  constexpr Traits() = default;
  constexpr Traits(std::initializer_list<Trait> traits) {
    for (const Trait trait : traits) add(trait);
  }
  constexpr void add(Trait trait) { bits_ |= bit(trait); }
  constexpr void remove(Trait trait) { bits_ &= static_cast<std::uint16_t>(~bit(trait)); }
  constexpr bool has(Trait trait) const { return (bits_ & bit(trait)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  bool operator==(const Traits&) const = default;
  std::vector<std::string_view> words() const;

 private:
  static constexpr std::uint16_t bit(Trait trait) {
    return static_cast<std::uint16_t>(1u << static_cast<unsigned>(trait));
  }
  std::uint16_t bits_ = 0;
};

}  // namespace lowtide::solve

// Limits that end where a test wants them to: at any look, alone or with all others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lowtide/base/limits.h"

namespace lowtide {

class Interruptions final : public Interrupter {
 public:
  enum class Kind {
    none,   // counts alone
    stall,  // those that are looked at from the so-manieth look of all on, for a few looks
    rest,   // these, and all that are looked at from then on
    some,   // one look in so many, by chance
  };

  // `more`: looks of a stall, or a seed.
  explicit Interruptions(Kind kind = Kind::none, std::int64_t number = 0, std::int64_t more = 1)
      : kind_(kind), number_(number), more_(more) {}

  bool ends() noexcept override {
    const std::int64_t look = looks_++;
    switch (kind_) {
      case Kind::none: return false;
      case Kind::stall: return look >= number_ && look < number_ + more_;
      case Kind::rest: return look >= number_;
      case Kind::some: break;
    }
    auto mixed = static_cast<std::uint64_t>(look + 1000 * more_) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 31)) * 0xbf58476d1ce4e5b9u;
    return (mixed >> 33) % static_cast<std::uint64_t>(number_) == 0;
  }
  std::int64_t looks() const { return looks_; }

  std::string text() const {
    const std::string number = std::to_string(number_);
    switch (kind_) {
      case Kind::none: return "none";
      case Kind::stall:
        return "those at look " + number + " and " + std::to_string(more_ - 1) + " more";
      case Kind::rest: return "all from look " + number + " on";
      case Kind::some: break;
    }
    return "one look in " + number + ", seed " + std::to_string(more_);
  }

 private:
  const Kind kind_;
  const std::int64_t number_, more_;
  std::atomic<std::int64_t> looks_{0};
};

// Calls ask(interruptions) once to count the looks, then with ends at so many of them, evenly
// spread (all, if there are no more): for one look alone, for a few, and for all from there on; and
// as often with ends by chance.
template <class Ask>
void end_everywhere(std::int64_t most, Ask ask) {
  using Kind = Interruptions::Kind;
  Interruptions none;
  ask(none);
  const std::int64_t looks = none.looks();
  const std::int64_t drawn = looks < most ? looks : most;
  for (std::int64_t i = 0; i < drawn; ++i) {
    const std::int64_t at = (2 * i + 1) * looks / (2 * drawn);  // in the middle of its stretch
    Interruptions stall(Kind::stall, at, i % 2 == 0 ? 1 : 4), rest(Kind::rest, at),
        some(Kind::some, 2 + i * i, most + i);
    ask(stall);
    ask(rest);
    ask(some);
  }
}

}  // namespace lowtide

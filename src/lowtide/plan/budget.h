// Budgets as users write them: "8GiB", "512 MB", "1000000" (bytes), "80%" (of the baseline peak),
// "act:50%" (inputs and resident bytes, and half of the rest of the peak).
#pragma once

#include <cstdint>
#include <string_view>

#include "lowtide/base/units.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

struct BudgetSpec {
  enum class Kind : std::uint8_t { bytes, share_of_peak, share_of_activations };
  Kind kind = Kind::bytes;
  Bytes bytes;                                  // for Kind::bytes
  std::int64_t numerator = 0, denominator = 1;  // otherwise the exact share
};

// Throws InputError (place "budget") that says what would be right.
BudgetSpec parse_budget(std::string_view text);

// A size in bytes only, in the same notation. Throws InputError (place: `what` "TEXT").
Bytes parse_size(std::string_view text, std::string_view what);

// "5%" or "5", exactly. Throws InputError (place: `what` "TEXT") for text that is no percentage of
// 0 or more.
Share parse_percentage(std::string_view text, std::string_view what);

// The longest duration with an overhead of at most "5%" or "5": exact, rounded down, at most
// Ticks::max(). Throws InputError (place "overhead") for text that is no percentage.
Ticks overhead_limit(std::string_view overhead, Ticks base);

}  // namespace lowtide

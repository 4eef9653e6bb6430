#include "lowtide/driver/live_budgets.h"

#include <algorithm>
#include <utility>

namespace lowtide::driver {

namespace {

// A part of the budget, within which budgets of live bytes are the same.
constexpr std::int64_t kNarrow = 2'000;

// 1, 1/2, 3/4, 1/4, 7/8, ...: each prefix is spread evenly over what is above 0. In 2^-16.
std::int64_t spread(std::int64_t index) {
  constexpr std::int64_t kOne = 1 << 16;
  std::int64_t value = 0;
  for (std::int64_t part = kOne / 2; index > 0 && part > 0; index /= 2, part /= 2)
    value += index % 2 * part;
  return kOne - value;
}

}  // namespace

void LiveBudgets::none(Bytes floor) {
  floor_ = std::max(floor_, floor);
  empty_ = std::max(empty_, next_);
  choose({});
}

void LiveBudgets::fits() {
  fitted_ = std::max(fitted_.value_or(next_), next_);
  choose({});
}

void LiveBudgets::misses(Bytes peak, Bytes taken, Bytes smallest) {
  least_ = std::min({least_.value_or(peak), peak, smallest});
  missed_ = std::min({missed_, next_, smallest});
  choose(Bytes(checked_mul_div(peak.count(), budget_.count(), taken.count(), Rounding::floor)));
}

void LiveBudgets::choose(std::optional<Bytes> guess) {
  const Bytes low = std::max({floor_, empty_ + Bytes(1), fitted_.value_or(Bytes(-1)) + Bytes(1)});
  const Bytes width = missed_ - low;
  if (width > Bytes(budget_.count() / kNarrow)) {
    const bool helps = guess && *guess >= low && *guess < missed_;
    next_ = helps ? *guess : low + Bytes(width.count() / 2);
    return;
  }
  if (!fitted_ && width > Bytes(0) && !std::exchange(lowest_tried_, true)) {
    next_ = low;
    return;
  }
  exhausted_ = true;
  if (fitted_) {
    next_ = *fitted_;
    return;
  }
  const Bytes least = std::max(floor_, least_.value_or(floor_));
  next_ = least + Bytes(checked_mul_div((budget_ - least).count(), spread(repeats_++), 1 << 16,
                                        Rounding::floor));
}

}  // namespace lowtide::driver

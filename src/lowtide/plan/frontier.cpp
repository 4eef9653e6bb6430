// Two staircases. Both fall: plans from the least need to the least time, claims from the
// smallest budget to the largest.
#include "lowtide/plan/frontier.h"

#include <algorithm>
#include <utility>

namespace lowtide {

bool Frontier::improves(Bytes needs, Ticks duration) const {
  const Entry* known = best(needs);
  return known == nullptr || duration < known->cost.duration;
}

bool Frontier::add(Entry entry) {
  if (!improves(entry.needs(), entry.cost.duration)) return false;
  std::erase_if(entries_, [&](const Entry& other) {
    return other.needs() >= entry.needs() && other.cost.duration >= entry.cost.duration;
  });
  const auto at = std::ranges::upper_bound(entries_, entry.needs(), {}, &Entry::needs);
  entries_.insert(at, std::move(entry));
  return true;
}

const Frontier::Entry* Frontier::best(Bytes budget) const {
  const auto beyond = std::ranges::upper_bound(entries_, budget, {}, &Entry::needs);
  return beyond == entries_.begin() ? nullptr : &*std::prev(beyond);
}

const Frontier::Entry* Frontier::above(Bytes budget) const {
  const auto beyond = std::ranges::upper_bound(entries_, budget, {}, &Entry::needs);
  return beyond == entries_.end() ? nullptr : &*beyond;
}

const Frontier::Entry* Frontier::smallest(Ticks limit) const {
  const auto within = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.cost.duration <= limit; });
  return within == entries_.end() ? nullptr : &*within;
}

void Frontier::raise_bound(Bytes budget, Ticks duration) {
  if (duration <= bound(budget)) return;
  std::erase_if(claims_, [&](const Claim& claim) {
    return claim.budget <= budget && claim.duration <= duration;
  });
  const auto at = std::ranges::upper_bound(claims_, budget, {}, &Claim::budget);
  claims_.insert(at, {budget, duration});
}

void Frontier::raise_floor(Bytes peak) { floor_ = std::max(floor_, peak); }

Ticks Frontier::bound(Bytes budget) const {
  const auto at = std::ranges::lower_bound(claims_, budget, {}, &Claim::budget);
  return at == claims_.end() ? Ticks(0) : at->duration;
}

Bytes Frontier::floor(Ticks limit) const {
  Bytes floor = floor_;
  for (const Claim& claim : claims_)
    if (claim.duration > limit)
      floor = std::max(floor, Bytes(std::min(claim.budget.count(), INT64_MAX - 1) + 1));
  return floor;
}

bool Frontier::decided(Bytes budget) const {
  if (budget < floor_) return true;
  const Entry* known = best(budget);
  return known != nullptr && known->cost.duration <= bound(budget);
}

}  // namespace lowtide

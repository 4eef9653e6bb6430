#include "lowtide/layout/ranking.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace lowtide::layout {

namespace {

double value(Property property, const Item& item, std::int64_t load, double factor) {
  switch (property) {
    case Property::duration: return item.duration * factor;
    case Property::area: return static_cast<double>(item.size) * item.duration * factor;
    case Property::load: return static_cast<double>(load);
    case Property::size: return static_cast<double>(item.size) * factor;
    case Property::sections: return static_cast<double>(item.last - item.first) * factor;
  }
  return 0;
}

// The positions of things that `before` orders; ties are for it to break.
template <class Before>
std::vector<std::int32_t> positions(std::size_t count, Before before) {
  std::vector<std::int32_t> order(count), position(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, before);
  for (std::size_t k = 0; k < count; ++k) position[at(order[k])] = static_cast<std::int32_t>(k);
  return position;
}

}  // namespace

std::vector<std::int32_t> ranks_by(std::span<const double> keys) {
  return positions(keys.size(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(keys[at(a)], a) < std::pair(keys[at(b)], b);
  });
}

std::vector<std::int32_t> ranks_by(const Rule& rule, std::span<const Item> items,
                                   std::span<const std::int64_t> loads,
                                   std::span<const double> factors) {
  std::vector<std::array<double, 3>> keys(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    for (std::size_t k = 0; k < rule.size(); ++k)
      keys[i][k] = -value(rule[k], items[i], loads[i], factors.empty() ? 1 : factors[i]);
  return positions(items.size(), [&](std::int32_t a, std::int32_t b) {
    return std::tie(keys[at(a)], a) < std::tie(keys[at(b)], b);
  });
}

}  // namespace lowtide::layout

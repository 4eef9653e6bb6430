// Problem: tell in constant time which of two items of a growing list comes first.
// Idea: every item has a 62-bit label, a new one the middle of its neighbours' labels. Where no
// label is left between two, the labels of the smallest aligned range around them that is thinly
// enough settled are spread evenly; the larger the range, the thinner it must be. From: M. Bender,
// R. Cole, E. Demaine, M. Farach-Colton, J. Zito, "Two simplified algorithms for maintaining order
// in a list", ESA 2002. Invariant: labels rise along the list. Loses: to a plain index wherever
// nothing is put in.
#include "lowtide/solve/greedy/order_list.h"

#include "lowtide/base/error.h"

namespace lowtide::solve::greedy {

namespace {
constexpr int kBits = 62;
// A range of 2^i labels may hold (2/1.3)^i items: 4e11 in the whole.
constexpr double kGrowth = 2 / 1.3;
}  // namespace

OrderList::OrderList(std::size_t items) : nodes_(items) {
  const std::uint64_t gap = (std::uint64_t{1} << kBits) / (items + 1);
  for (std::size_t i = 0; i < items; ++i)
    nodes_[i] = {gap * (i + 1), static_cast<Item>(i) - 1,
                 i + 1 < items ? static_cast<Item>(i) + 1 : kNone};
}

OrderList::Item OrderList::insert_before(Item at) {
  const auto room_below = [&] {
    const Item previous = node(at).previous;
    return label(at) - (previous == kNone ? 0 : label(previous));
  };
  if (room_below() < 2) spread(at);
  const Item previous = node(at).previous;
  const auto made = static_cast<Item>(nodes_.size());
  check(nodes_.size() < 0x7fffffff, "too many items for one list");
  nodes_.push_back({label(at) - room_below() / 2, previous, at});
  node(at).previous = made;
  (previous == kNone ? first_ : node(previous).next) = made;
  return made;
}

void OrderList::spread(Item at) {
  Item low = at, high = at;
  std::uint64_t count = 1, begin = 0, gap = 0;
  double capacity = 1;
  for (int bits = 1; bits <= kBits; ++bits) {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    begin = label(at) & ~mask;
    for (; node(low).previous != kNone && label(node(low).previous) >= begin; ++count)
      low = node(low).previous;
    for (; node(high).next != kNone && label(node(high).next) <= begin + mask; ++count)
      high = node(high).next;
    capacity *= kGrowth;
    gap = (mask + 1) / (count + 1);
    if (gap >= 2 && static_cast<double>(count) <= capacity) break;
  }
  check(gap >= 2, "too many items for one list");
  for (std::uint64_t k = 1; k <= count; ++k, low = node(low).next)
    node(low).label = begin + k * gap;
}

}  // namespace lowtide::solve::greedy

// Changes are undone from a trail; sums and lists of open items are undone by themselves.
#include "lowtide/layout/partial_placement.h"

#include <algorithm>
#include <numeric>

namespace lowtide::layout {

std::int64_t PartialPlacement::live_of(std::span<const Item> items) {
  std::int64_t live = 0;
  for (const Item& item : items) live += item.last - item.first;
  return live;
}

PartialPlacement::PartialPlacement(std::span<const Item> items, std::int32_t sections)
    : items_(items),
      neighbours_(items.size()),
      of_section_(at(sections)),
      place_in_(items.size()),
      open_(at(sections)),
      placed_(items.size()),
      lowest_(items.size()),
      floor_(at(sections)),
      left_(at(sections)),
      witness_(at(sections)) {
  std::vector<std::int32_t> by_first(items.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::ranges::stable_sort(by_first, {}, [&](std::int32_t i) { return items[at(i)].first; });
  for (std::size_t k = 0; k < by_first.size(); ++k) {
    const std::int32_t i = by_first[k];
    for (std::size_t more = k + 1;
         more < by_first.size() && items[at(by_first[more])].first < items[at(i)].last; ++more) {
      neighbours_[at(i)].push_back(by_first[more]);
      neighbours_[at(by_first[more])].push_back(i);
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i)
    for (std::int32_t s = items[i].first; s < items[i].last; ++s) {
      place_in_[i].push_back(static_cast<std::int32_t>(of_section_[at(s)].size()));
      of_section_[at(s)].push_back(static_cast<std::int32_t>(i));
    }
}

bool PartialPlacement::begin(std::int64_t capacity) {
  capacity_ = capacity;
  std::ranges::fill(placed_, std::uint8_t{0});
  std::ranges::fill(lowest_, 0);
  std::ranges::fill(floor_, 0);
  trail_.clear();
  for (std::size_t s = 0; s < of_section_.size(); ++s) {
    const std::vector<std::int32_t>& here = of_section_[s];
    open_[s] = here.size();
    witness_[s] = here.empty() ? -1 : here.front();
    left_[s] = 0;
    for (const std::int32_t i : here) left_[s] += items_[at(i)].size;
    if (left_[s] > capacity) return false;
  }
  return true;
}

bool PartialPlacement::meets_open(std::int32_t item) const {
  return std::ranges::any_of(neighbours_[at(item)],
                             [&](std::int32_t j) { return placed_[at(j)] == 0; });
}

std::int64_t PartialPlacement::most_left(const Item& item) const {
  return *std::max_element(left_.begin() + item.first, left_.begin() + item.last);
}

void PartialPlacement::set(std::int64_t& value, std::int64_t to) {
  trail_.push_back({&value, value});
  value = to;
}

bool PartialPlacement::place(std::int32_t index) {
  const Item& item = items_[at(index)];
  const std::int64_t end = lowest_[at(index)] + item.size;
  placed_[at(index)] = 1;
  for (std::int32_t s = item.first; s < item.last; ++s) {
    left_[at(s)] -= item.size;
    close(index, s);
    set(floor_[at(s)], end);
  }
  looks_ += std::int64_t{2} * (item.last - item.first) + std::ssize(neighbours_[at(index)]);
  if (end > capacity_) return false;
  std::int32_t first = item.first, last = item.last;
  for (const std::int32_t j : neighbours_[at(index)]) {
    if (placed_[at(j)] != 0 || lowest_[at(j)] >= end) continue;
    if (end + items_[at(j)].size > capacity_) return false;
    set(lowest_[at(j)], end);
    first = std::min(first, items_[at(j)].first);
    last = std::max(last, items_[at(j)].last);
  }
  return raise_floors(first, last);
}

void PartialPlacement::take_back(std::int32_t index, std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) *trail_.back().value = trail_.back().before;
  const Item& item = items_[at(index)];
  for (std::int32_t s = item.first; s < item.last; ++s) {
    left_[at(s)] += item.size;
    ++open_[at(s)];
  }
  placed_[at(index)] = 0;
}

void PartialPlacement::swap_in(std::int32_t section, std::size_t a, std::size_t b) {
  std::vector<std::int32_t>& list = of_section_[at(section)];
  std::swap(list[a], list[b]);
  for (const std::size_t k : {a, b})
    place_in_[at(list[k])][at(section - items_[at(list[k])].first)] = static_cast<std::int32_t>(k);
}

void PartialPlacement::close(std::int32_t item, std::int32_t section) {
  const std::int32_t place = place_in_[at(item)][at(section - items_[at(item)].first)];
  swap_in(section, at(place), --open_[at(section)]);
}

bool PartialPlacement::raise_floors(std::int32_t first, std::int32_t last) {
  looks_ += last - first;
  for (std::int32_t s = first; s < last; ++s) {
    const std::int64_t witness = witness_[at(s)];
    if (witness < 0) continue;
    const auto index = static_cast<std::size_t>(witness);
    const bool stands = placed_[index] == 0 && lowest_[index] <= floor_[at(s)];
    if (!stands && !find_witness(s)) continue;
    if (floor_[at(s)] + left_[at(s)] > capacity_) return false;
  }
  return true;
}

// False if nothing is open.
bool PartialPlacement::find_witness(std::int32_t section) {
  std::int64_t least = INT64_MAX;
  std::int32_t found = -1;
  for (std::size_t k = 0; k < open_[at(section)]; ++k) {
    const std::int32_t j = of_section_[at(section)][k];
    ++looks_;
    if (lowest_[at(j)] >= least) continue;
    least = lowest_[at(j)];
    found = j;
    // What is low stays so for a while: the next look begins with it.
    if (least <= floor_[at(section)]) {
      swap_in(section, 0, k);
      break;
    }
  }
  set(witness_[at(section)], found);
  if (found < 0) return false;
  if (least > floor_[at(section)]) set(floor_[at(section)], least);
  return true;
}

}  // namespace lowtide::layout

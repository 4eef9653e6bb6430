#include "lowtide/layout/canonical_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lowtide::layout {

namespace {
constexpr std::size_t kMostItems = 4000;           // the search is as deep
constexpr std::int64_t kMostMeetings = 4'000'000;  // pairs of items that share a section
constexpr double kNoise = 0.5;
constexpr std::int64_t kLooksPerUnit = 512;  // of work
constexpr std::int64_t kNodesPerItem = 10;   // of the shortest search

// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...: searches of many lengths, each as much in all as any other.
// Source: M. Luby, A. Sinclair and D. Zuckerman, "Optimal speedup of Las Vegas algorithms", 1993.
std::int64_t luby(std::int64_t index) {
  while (true) {
    std::int64_t power = 1;
    while (2 * power - 1 < index) power *= 2;
    if (2 * power - 1 == index) return power;
    index -= power - 1;
  }
}
}  // namespace

bool CanonicalSearch::suits(std::span<const Item> items, std::int32_t sections) {
  if (items.size() > kMostItems) return false;
  std::int64_t meetings = 0;
  std::vector<std::int64_t> count(at(sections) + 1, 0);
  for (const Item& item : items) {
    ++count[at(item.first)];
    --count[at(item.last)];
  }
  for (std::size_t s = 1; s < count.size(); ++s) count[s] += count[s - 1];
  for (const std::int64_t live : count) meetings += live;
  return meetings <= kMostMeetings;
}

CanonicalSearch::CanonicalSearch(std::span<const Item> items, std::int32_t sections,
                                 std::uint64_t seed)
    : items_(items),
      sections_(sections),
      random_(seed),
      neighbours_(items.size()),
      of_section_(at(sections)),
      place_in_(items.size()),
      open_(at(sections)),
      factors_(items.size(), 1),
      ranks_(items.size()),
      placed_(items.size()),
      lowest_(items.size()),
      floor_(at(sections)),
      left_(at(sections)),
      witness_(at(sections)),
      crossing_(at(sections)),
      offsets_(items.size()) {
  const auto count = static_cast<std::int32_t>(items.size());
  for (std::int32_t i = 0; i < count; ++i) {
    for (std::int32_t s = items[at(i)].first; s < items[at(i)].last; ++s) {
      place_in_[at(i)].push_back(static_cast<std::int32_t>(of_section_[at(s)].size()));
      of_section_[at(s)].push_back(i);
    }
    for (std::int32_t j = 0; j < count; ++j)
      if (i != j && items[at(i)].first < items[at(j)].last &&
          items[at(j)].first < items[at(i)].last)
        neighbours_[at(i)].push_back(j);
  }
}

CanonicalSearch::Answer CanonicalSearch::run(std::int64_t capacity, Limits& limits) {
  capacity_ = capacity;
  limits_ = &limits;
  while (!limits.stopped()) {
    const auto rules = static_cast<std::int64_t>(kRules.size());
    const std::int64_t round = tries_ / rules;
    rule_ = &kRules[static_cast<std::size_t>(tries_ % rules)];
    const double noise = kNoise * random_.uniform();
    for (double& factor : factors_)
      factor = round == 0 ? 1 : std::exp(noise * (random_.uniform() - 0.5));
    nodes_left_ = kNodesPerItem * static_cast<std::int64_t>(items_.size()) * luby(round + 1);
    ++tries_;
    const Answer answer = search_all();
    if (answer != Answer::stopped) return answer;
  }
  return Answer::stopped;
}

CanonicalSearch::Answer CanonicalSearch::search_all() {
  std::ranges::fill(placed_, std::uint8_t{0});
  std::ranges::fill(lowest_, 0);
  std::ranges::fill(floor_, 0);
  std::ranges::fill(crossing_, 0);
  trail_.clear();
  std::vector<std::int32_t> open(items_.size());
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i] = static_cast<std::int32_t>(i);
    for (std::int32_t s = items_[i].first; s + 1 < items_[i].last; ++s) ++crossing_[at(s)];
  }
  std::vector<std::int32_t> borders{0};
  for (std::int32_t s = 0; s < sections_; ++s) {
    const std::vector<std::int32_t>& here = of_section_[at(s)];
    left_[at(s)] = 0;
    for (const std::int32_t i : here) left_[at(s)] += items_[at(i)].size;
    if (left_[at(s)] > capacity_) return Answer::none;
    open_[at(s)] = here.size();
    witness_[at(s)] = here.empty() ? -1 : here.front();
    if (s + 1 < sections_ && crossing_[at(s)] == 0) borders.push_back(s + 1);
  }
  borders.push_back(sections_);
  return search_apart(open, borders);
}

std::vector<CanonicalSearch::Candidate> CanonicalSearch::candidates(
    const std::vector<std::int32_t>& open, std::int64_t least, std::int32_t least_rank) const {
  // Dominance: what begins where another item could have ended is not next.
  std::int64_t below = INT64_MAX;
  for (const std::int32_t i : open) below = std::min(below, lowest_[at(i)] + items_[at(i)].size);
  std::vector<Candidate> found;
  for (const std::int32_t i : open) {
    const Candidate candidate{lowest_[at(i)], ranks_[at(i)], i};
    if (candidate.offset >= below || candidate.offset < least) continue;
    if (candidate.offset == least && candidate.rank < least_rank) continue;
    found.push_back(candidate);
  }
  std::ranges::sort(found);
  return found;
}

bool CanonicalSearch::fits_above(std::int64_t offset, std::int32_t first, std::int32_t last) const {
  for (std::int32_t s = first; s < last; ++s)
    if (left_[at(s)] > 0 && offset + left_[at(s)] > capacity_) return false;
  return true;
}

CanonicalSearch::Answer CanonicalSearch::search(const std::vector<std::int32_t>& open,
                                                std::int32_t first, std::int32_t last,
                                                std::int64_t least, std::int32_t least_rank) {
  looked_ += static_cast<std::int64_t>(open.size()) + (last - first);
  const std::int64_t work = std::exchange(looked_, 0) / kLooksPerUnit;
  if (--nodes_left_ < 0 || limits_->spend_all(1 + work)) return Answer::stopped;
  for (const Candidate& candidate : candidates(open, least, least_rank)) {
    // Everything still open in these sections lies at this offset or above; later candidates are
    // higher still.
    if (!fits_above(candidate.offset, first, last)) break;
    const std::size_t mark = trail_.size();
    const bool meets_none = std::ranges::all_of(
        neighbours_[at(candidate.item)], [&](std::int32_t j) { return placed_[at(j)] != 0; });
    Answer answer = Answer::none;
    if (place(candidate.item))
      answer = search_rest(open, first, last, candidate.item, candidate.offset);
    if (answer == Answer::found) offsets_[at(candidate.item)] = candidate.offset;
    take_back(candidate.item, mark);
    if (answer != Answer::none) return answer;
    if (meets_none) break;  // it was in nobody's way, so nothing else can help
  }
  return Answer::none;
}

CanonicalSearch::Answer CanonicalSearch::search_rest(const std::vector<std::int32_t>& open,
                                                     std::int32_t first, std::int32_t last,
                                                     std::int32_t placed, std::int64_t offset) {
  const Item& item = items_[at(placed)];
  std::vector<std::int32_t> borders{first};
  for (std::int32_t s = item.first; s + 1 < item.last; ++s)
    if (--crossing_[at(s)] == 0) borders.push_back(s + 1);
  std::vector<std::int32_t> rest;
  rest.reserve(open.size());
  for (const std::int32_t i : open)
    if (placed_[at(i)] == 0) rest.push_back(i);
  Answer answer = Answer::found;
  if (borders.size() > 1) {
    borders.push_back(last);
    answer = search_apart(rest, borders);
  } else if (!rest.empty()) {
    answer = search(rest, first, last, offset, ranks_[at(placed)]);
  }
  for (std::int32_t s = item.first; s + 1 < item.last; ++s) ++crossing_[at(s)];
  return answer;
}

// The smallest part first: if one of them cannot be placed, it is found out soonest.
CanonicalSearch::Answer CanonicalSearch::search_apart(const std::vector<std::int32_t>& open,
                                                      const std::vector<std::int32_t>& borders) {
  struct Side {
    std::vector<std::int32_t> open;
    std::int32_t first = 0, last = 0;
  };
  std::vector<Side> sides(borders.size() - 1);
  for (std::size_t k = 0; k < sides.size(); ++k) {
    sides[k].first = borders[k];
    sides[k].last = borders[k + 1];
  }
  for (const std::int32_t i : open) {
    const auto border = std::ranges::upper_bound(borders, items_[at(i)].first);
    sides[static_cast<std::size_t>(border - borders.begin()) - 1].open.push_back(i);
  }
  std::ranges::stable_sort(sides, {}, [](const Side& side) { return side.open.size(); });
  for (const Side& side : sides) {
    if (side.open.empty()) continue;
    std::vector<std::int32_t> before;
    for (const std::int32_t i : side.open) before.push_back(ranks_[at(i)]);
    rank(side.open);
    const Answer answer = search(side.open, side.first, side.last, 0, -1);
    for (std::size_t k = 0; k < before.size(); ++k) ranks_[at(side.open[k])] = before[k];
    if (answer != Answer::found) return answer;
  }
  return Answer::found;
}

// By what is left to place, among themselves.
void CanonicalSearch::rank(const std::vector<std::int32_t>& open) {
  std::vector<Item> items;
  std::vector<std::int64_t> loads;
  std::vector<double> factors;
  for (const std::int32_t i : open) {
    const Item& item = items_[at(i)];
    items.push_back(item);
    factors.push_back(factors_[at(i)]);
    loads.push_back(*std::max_element(left_.begin() + item.first, left_.begin() + item.last));
  }
  const std::vector<std::int32_t> ranks = ranks_by(*rule_, items, loads, factors);
  for (std::size_t k = 0; k < open.size(); ++k) ranks_[at(open[k])] = ranks[k];
}

void CanonicalSearch::set(std::int64_t& value, std::int64_t to) {
  trail_.push_back({&value, value});
  value = to;
}

// At its lowest offset. False if something cannot lie within the capacity any more; what was
// changed stays changed until it is taken back.
bool CanonicalSearch::place(std::int32_t index) {
  const Item& item = items_[at(index)];
  const std::int64_t end = lowest_[at(index)] + item.size;
  placed_[at(index)] = 1;
  for (std::int32_t s = item.first; s < item.last; ++s) {
    left_[at(s)] -= item.size;
    close(index, s);
    set(floor_[at(s)], end);
  }
  looked_ +=
      2 * (item.last - item.first) + static_cast<std::int64_t>(neighbours_[at(index)].size());
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

void CanonicalSearch::take_back(std::int32_t index, std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) *trail_.back().value = trail_.back().before;
  const Item& item = items_[at(index)];
  for (std::int32_t s = item.first; s < item.last; ++s) {
    left_[at(s)] += item.size;
    ++open_[at(s)];
  }
  placed_[at(index)] = 0;
}

void CanonicalSearch::swap_in(std::int32_t section, std::size_t a, std::size_t b) {
  std::vector<std::int32_t>& list = of_section_[at(section)];
  std::swap(list[a], list[b]);
  for (const std::size_t k : {a, b})
    place_in_[at(list[k])][at(section - items_[at(list[k])].first)] = static_cast<std::int32_t>(k);
}

void CanonicalSearch::close(std::int32_t item, std::int32_t section) {
  const std::int32_t place = place_in_[at(item)][at(section - items_[at(item)].first)];
  swap_in(section, at(place), --open_[at(section)]);
}

bool CanonicalSearch::raise_floors(std::int32_t first, std::int32_t last) {
  for (std::int32_t s = first; s < last; ++s) {
    const std::int64_t witness = witness_[at(s)];
    if (witness < 0) continue;
    const auto index = static_cast<std::size_t>(witness);
    if (placed_[index] != 0 || lowest_[index] > floor_[at(s)]) {
      std::int64_t least = INT64_MAX;
      std::int32_t found = -1;
      for (std::size_t k = 0; k < open_[at(s)]; ++k) {
        const std::int32_t j = of_section_[at(s)][k];
        ++looked_;
        if (lowest_[at(j)] >= least) continue;
        least = lowest_[at(j)];
        found = j;
        // What is low stays so for a while: the next look begins with it.
        if (least <= floor_[at(s)]) {
          swap_in(s, 0, k);
          break;
        }
      }
      set(witness_[at(s)], found);
      if (found < 0) continue;
      if (least > floor_[at(s)]) set(floor_[at(s)], least);
    }
    if (floor_[at(s)] + left_[at(s)] > capacity_) return false;
  }
  return true;
}

}  // namespace lowtide::layout

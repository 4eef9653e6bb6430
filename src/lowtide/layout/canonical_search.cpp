#include "lowtide/layout/canonical_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lowtide::layout {

namespace {
constexpr double kNoise = 0.5;
constexpr std::int64_t kNodesPerItem = 10;  // of the shortest search

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

CanonicalSearch::CanonicalSearch(std::span<const Item> items, std::int32_t sections,
                                 PartialPlacement& placement, std::uint64_t seed)
    : items_(items),
      sections_(sections),
      placement_(placement),
      random_(seed),
      factors_(items.size(), 1),
      ranks_(items.size()),
      crossing_(at(sections)),
      offsets_(items.size()) {}

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
  if (!placement_.begin(capacity_)) return Answer::none;
  std::ranges::fill(crossing_, 0);
  std::vector<std::int32_t> open(items_.size());
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i] = static_cast<std::int32_t>(i);
    for (std::int32_t s = items_[i].first; s + 1 < items_[i].last; ++s) ++crossing_[at(s)];
  }
  std::vector<std::int32_t> borders{0};
  for (std::int32_t s = 0; s + 1 < sections_; ++s)
    if (crossing_[at(s)] == 0) borders.push_back(s + 1);
  borders.push_back(sections_);
  return search_apart(open, borders);
}

std::vector<CanonicalSearch::Candidate> CanonicalSearch::candidates(
    const std::vector<std::int32_t>& open, std::int64_t least, std::int32_t least_rank) const {
  // Dominance: what begins where another item could have ended is not next.
  std::int64_t below = INT64_MAX;
  for (const std::int32_t i : open)
    below = std::min(below, placement_.lowest(i) + items_[at(i)].size);
  std::vector<Candidate> found;
  for (const std::int32_t i : open) {
    const Candidate candidate{placement_.lowest(i), ranks_[at(i)], i};
    if (candidate.offset >= below || candidate.offset < least) continue;
    if (candidate.offset == least && candidate.rank < least_rank) continue;
    found.push_back(candidate);
  }
  std::ranges::sort(found);
  return found;
}

bool CanonicalSearch::fits_above(std::int64_t offset, std::int32_t first, std::int32_t last) const {
  for (std::int32_t s = first; s < last; ++s)
    if (placement_.left(s) > 0 && offset + placement_.left(s) > capacity_) return false;
  return true;
}

CanonicalSearch::Answer CanonicalSearch::search(const std::vector<std::int32_t>& open,
                                                std::int32_t first, std::int32_t last,
                                                std::int64_t least, std::int32_t least_rank) {
  placement_.look(static_cast<std::int64_t>(open.size()) + (last - first));
  if (--nodes_left_ < 0 || limits_->spend_all(1 + placement_.take_work())) return Answer::stopped;
  for (const Candidate& candidate : candidates(open, least, least_rank)) {
    // Everything still open in these sections lies at this offset or above; later candidates are
    // higher still.
    if (!fits_above(candidate.offset, first, last)) break;
    const std::size_t mark = placement_.mark();
    const bool meets_open = placement_.meets_open(candidate.item);
    Answer answer = Answer::none;
    if (placement_.place(candidate.item))
      answer = search_rest(open, first, last, candidate.item, candidate.offset);
    if (answer == Answer::found) offsets_[at(candidate.item)] = candidate.offset;
    placement_.take_back(candidate.item, mark);
    if (answer != Answer::none) return answer;
    if (!meets_open) break;  // it was in nobody's way, so nothing else can help
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
    if (!placement_.is_placed(i)) rest.push_back(i);
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
    before.reserve(side.open.size());
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
    loads.push_back(placement_.most_left(item));
  }
  const std::vector<std::int32_t> ranks = ranks_by(*rule_, items, loads, factors);
  for (std::size_t k = 0; k < open.size(); ++k) ranks_[at(open[k])] = ranks[k];
}

}  // namespace lowtide::layout

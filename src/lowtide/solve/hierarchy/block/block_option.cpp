// Sorts lists of a few hundred options, and selects from them.
#include "lowtide/solve/hierarchy/block/block_option.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

namespace lowtide::solve::hierarchy {

namespace {

bool as_good(const BlockOption& a, const BlockOption& b) {
  return a.time() <= b.time() && a.saved <= b.saved && a.forward_peak <= b.forward_peak &&
         a.backward_peak <= b.backward_peak;
}

}  // namespace

std::vector<BlockOption> pareto(std::vector<BlockOption> options) {
  // An option that dominates another comes before it, or is equal.
  std::stable_sort(options.begin(), options.end(), [](const BlockOption& a, const BlockOption& b) {
    return std::tuple(a.time(), a.saved, a.peak(), a.forward_peak + a.backward_peak) <
           std::tuple(b.time(), b.saved, b.peak(), b.forward_peak + b.backward_peak);
  });
  std::vector<BlockOption> kept;
  for (BlockOption& option : options) {
    const auto better =
        std::ranges::find_if(kept, [&](const BlockOption& k) { return as_good(k, option); });
    if (better == kept.end())
      kept.push_back(std::move(option));
    else if (!better->quickest_within)  // a proof for one option holds for every option that
                                        // dominates it
      better->quickest_within = option.quickest_within;
  }
  std::stable_sort(kept.begin(), kept.end(), [](const BlockOption& a, const BlockOption& b) {
    return a.peak() != b.peak() ? a.peak() > b.peak() : a.time() < b.time();
  });
  return kept;
}

std::vector<std::size_t> convex_hull(std::span<const BlockOption> options) {
  std::vector<std::size_t> order(options.size()), hull;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::tuple(options[i].time(), options[i].saved, options[i].peak());
  });
  // Time per saved byte: it must rise from step to step.
  const auto price = [&](std::size_t from, std::size_t to) {
    return static_cast<double>((options[to].time() - options[from].time()).count()) /
           static_cast<double>((options[from].saved - options[to].saved).count());
  };
  for (const std::size_t i : order) {
    if (!hull.empty() && options[i].saved >= options[hull.back()].saved) continue;
    // Options on the line between two others stay, since a choice may need them.
    while (hull.size() > 1 && price(hull.back(), i) < price(hull[hull.size() - 2], hull.back()))
      hull.pop_back();
    hull.push_back(i);
  }
  return hull;
}

std::vector<std::size_t> spread(std::span<const BlockOption> options, std::vector<std::size_t> from,
                                std::size_t most) {
  std::ranges::stable_sort(from, std::greater(), [&](std::size_t i) { return options[i].peak(); });
  if (from.size() <= most) return from;
  // Each is below 2^63, so their sum is below 2^64.
  const auto apart = [&](std::size_t a, std::size_t b) {
    const auto between = [](Bytes x, Bytes y) {
      return static_cast<std::uint64_t>(std::abs(x.count() - y.count()));
    };
    return between(options[a].peak(), options[b].peak()) +
           between(options[a].saved, options[b].saved);
  };
  std::vector<std::size_t> taken;  // indices into `from`
  std::vector<std::uint64_t> nearest(from.size(), UINT64_MAX);
  const auto take = [&](std::size_t place) {
    taken.push_back(place);
    for (std::size_t i = 0; i < from.size(); ++i)
      nearest[i] = std::min(nearest[i], apart(from[i], from[place]));
  };
  if (most > 0) take(0);
  if (most > 1) take(from.size() - 1);
  const auto take_least = [&](const auto& figure) {
    const auto place = std::ranges::min_element(from, {}, figure) - from.begin();
    if (taken.size() < most && nearest[static_cast<std::size_t>(place)] > 0)
      take(static_cast<std::size_t>(place));
  };
  take_least([&](std::size_t i) { return options[i].time(); });
  take_least([&](std::size_t i) { return options[i].saved; });
  while (taken.size() < most) {
    const auto farthest = std::ranges::max_element(nearest);
    if (*farthest == 0) break;  // all remaining options equal chosen ones
    take(static_cast<std::size_t>(farthest - nearest.begin()));
  }
  std::ranges::sort(taken);
  std::vector<std::size_t> kept;
  for (const std::size_t i : taken) kept.push_back(from[i]);
  return kept;
}

std::vector<std::size_t> shares_of(std::size_t total, std::span<const std::size_t> ops) {
  const std::size_t sum = std::accumulate(ops.begin(), ops.end(), std::size_t{0});
  std::vector<std::size_t> shares;
  for (const std::size_t own : ops)
    shares.push_back(std::max<std::size_t>(2, sum == 0 ? 2 : total * own / sum));
  return shares;
}

}  // namespace lowtide::solve::hierarchy

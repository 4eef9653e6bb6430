#include "lowtide/layout/squeaky_wheel.h"

#include <algorithm>
#include <cmath>

#include "lowtide/layout/ranking.h"

namespace lowtide::layout {

namespace {
constexpr int kPatience = 60;  // dives without a lower height before another start
}  // namespace

SqueakyWheel::SqueakyWheel(std::span<const Item> items, std::span<const std::int64_t> loads,
                           Skyline& skyline, std::uint64_t seed)
    : items_(items), loads_(loads), skyline_(skyline), random_(seed) {
  start_anew();
  best_keys_ = keys_;
}

void SqueakyWheel::start_anew() {
  const std::vector<std::int32_t> ranks =
      ranks_by(kRules[starts_++ % kRules.size()], items_, loads_);
  keys_.assign(ranks.begin(), ranks.end());
}

void SqueakyWheel::run(std::int64_t goal, Lowest& lowest, Limits& limits) {
  while (lowest.height > goal && !limits.stopped()) {
    ranks_ = ranks_by(keys_);
    if (limits.spend_all(static_cast<std::int64_t>(items_.size() / 16))) return;
    const std::int64_t height = skyline_.dive(ranks_, INT64_MAX - 1, limits);
    if (height == Skyline::kGaveUp) return;
    if (height < lowest.height) lowest = {height, skyline_.offsets()};
    if (height <= best_) {
      if (height < best_) since_ = 0;
      best_ = height;
      best_keys_ = keys_;
    }
    blame(std::max(goal, std::min(lowest.height - 1, lowest.height - lowest.height / 10000)));
    shuffle();
    if (++since_ > kPatience) restart();
  }
}

void SqueakyWheel::blame(std::int64_t above) {
  const auto count = static_cast<double>(items_.size());
  for (std::size_t i = 0; i < items_.size(); ++i) {
    keys_[i] = static_cast<double>(ranks_[i]);
    if (skyline_.offsets()[i] + items_[i].size > above)
      keys_[i] -= count * (0.05 + 0.45 * random_.uniform());
  }
}

void SqueakyWheel::shuffle() {
  const auto count = static_cast<double>(items_.size());
  for (std::size_t moves = 1 + random_.below(4); moves > 0; --moves)
    keys_[random_.below(items_.size())] += (random_.uniform() - 0.5) * count * 0.3;
}

void SqueakyWheel::restart() {
  since_ = 0;
  if (random_.chance(0.5)) {
    keys_ = best_keys_;
    return;
  }
  start_anew();
  best_ = INT64_MAX;
  for (double& key : keys_) key *= std::exp((random_.uniform() - 0.5) * 0.6);
}

}  // namespace lowtide::layout

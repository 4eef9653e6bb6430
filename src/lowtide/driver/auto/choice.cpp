#include "lowtide/driver/auto/choice.h"

namespace lowtide::driver {

Choice::Choice(const std::vector<double>& weights) {
  for (const double weight : weights) arms_.push_back({.weight = weight});
}

// One draw of reward 1/2 is added, so that an alternative that was never drawn has a mean.
double Choice::Arm::share() const {
  const double mean = (rewards + 0.5) / (draws + 1);
  return weight * mean * mean;
}

std::size_t Choice::next(const std::function<bool(std::size_t)>& eligible) {
  std::vector<std::size_t> open;
  double all = 0;
  for (std::size_t i = 0; i < arms_.size(); ++i)
    if (arms_[i].weight > 0 && eligible(i)) {
      open.push_back(i);
      all += arms_[i].share();
    }
  if (open.empty()) return kNone;
  std::size_t chosen = open.front();
  for (const std::size_t i : open) {
    arms_[i].behind += all > 0 ? arms_[i].share() / all : 0;
    if (arms_[i].behind > arms_[chosen].behind) chosen = i;
  }
  arms_[chosen].behind -= 1;
  return chosen;
}

void Choice::learn(std::size_t chosen, double reward) {
  arms_[chosen].draws += 1;
  arms_[chosen].rewards += reward;
}

void Choice::age() {
  for (Arm& arm : arms_) {
    arm.draws /= 2;
    arm.rewards /= 2;
  }
}

}  // namespace lowtide::driver

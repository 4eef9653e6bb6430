// Chooses repeatedly among alternatives, and learns from their rewards (a multi-armed bandit).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace lowtide::driver {

// A bandit without random draws: the share of an alternative is its weight times the square of its
// mean reward, and the alternative furthest behind its share is chosen. So the same rewards give
// the same choices.
class Choice {
 public:
  // Weights >= 0; an alternative of weight 0 is never chosen.
  explicit Choice(const std::vector<double>& weights);

  // The index of the next alternative, among those that `eligible` admits; kNone if there is none.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t next(const std::function<bool(std::size_t)>& eligible);
  // `reward` in [0, 1].
  void learn(std::size_t chosen, double reward);
  // Halves the weight of all rewards so far.
  void age();

 private:
  struct Arm {
    double weight;
    double behind = 0;              // its share of the draws so far, less its draws
    double draws = 0, rewards = 0;  // sums, halved by each age()
    double share() const;
  };
  std::vector<Arm> arms_;
};

}  // namespace lowtide::driver

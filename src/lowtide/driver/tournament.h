// Successive halving over lists of transforms. See tournament.cpp.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "lowtide/driver/transform_ideas.h"

namespace lowtide::driver {

// A list of transforms in the tournament.
struct Contender {
  std::size_t number = 0;  // order of entry
  Transforms transforms;
  double ops = 0;  // of the transformed graph
};

// How lists are ranked, and how a list takes its turn.
class Contest {
 public:
  virtual ~Contest() = default;

  // The first lists, the most promising first.
  virtual std::vector<Transforms> first() = 0;
  // Lists near the best one.
  virtual std::vector<Transforms> near(const Contender& best) = 0;
  // Sets the contender's `ops`; returns false if its list is refused.
  virtual bool enter(Contender& contender) = 0;
  virtual bool better(const Contender& one, const Contender& other) const = 0;
  // Works on all contenders, for this share of the remaining work; returns false if the tournament
  // is over.
  virtual bool run(std::span<Contender* const> contenders, double share) = 0;
  // Infinite without a limit.
  virtual double work_left() const = 0;
};

class Tournament {
 public:
  explicit Tournament(Contest& contest) : contest_(contest) {}

  void run();

 private:
  // Does nothing if the list takes part already, or is refused.
  void enter(const Transforms& transforms);
  std::size_t most() const;
  std::vector<Contender*> next_phase(int phase);
  std::vector<Contender*> choose(std::size_t most) const;
  std::vector<Contender*> enter_near(const Contender& best);

  Contest& contest_;
  std::size_t most_ = 0;  // contenders of the first phase
  std::deque<Contender> contenders_;
  std::vector<Contender*> ranking_;  // the best first
  std::vector<Transforms> seen_;
};

}  // namespace lowtide::driver

// Successive halving over lists of transforms. See tournament.cpp.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "lowtide/driver/transform_ideas.h"

namespace lowtide::driver {

// A list of transforms that takes part.
struct Contender {
  std::size_t number = 0;  // how many entered before it
  Transforms transforms;
  double ops = 0;  // of the graph that they make
};

// What lists are measured by, and how a list takes its turn.
class Contest {
 public:
  virtual ~Contest() = default;

  // Lists to begin with, the most promising first.
  virtual std::vector<Transforms> first() = 0;
  // Lists that differ little from the best one.
  virtual std::vector<Transforms> near(const Contender& best) = 0;
  // Sets the contender's `ops`; false if its list is refused.
  virtual bool enter(Contender& contender) = 0;
  virtual bool better(const Contender& one, const Contender& other) const = 0;
  // Works on all of them, for that share of the work that is left; false if the tournament is over.
  virtual bool run(std::span<Contender* const> contenders, double share) = 0;
  // Infinite if nothing limits it.
  virtual double work_left() const = 0;
};

class Tournament {
 public:
  explicit Tournament(Contest& contest) : contest_(contest) {}

  void run();

 private:
  // Does nothing if the list is in already, or is refused.
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

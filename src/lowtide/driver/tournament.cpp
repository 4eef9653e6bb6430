// Problem: choose, among many lists of transforms, the one that deserves most of the work.
//
// Idea: all lists get equal work in a phase. Then the better half continues with twice the work,
// until one list is left. After the first phases, lists near the best one enter: a few parts more
// or fewer, another split after it, substitutions. With little work few lists begin, since a result
// of too little work gives no information.
//
// Source: successive halving (Jamieson and Talwalkar, AISTATS 2016), with results of searches in
// place of losses.
//
// Invariant: the best list of all that took part is never replaced by a worse one.
//
// Loses: if the best list is behind for long.
#include "lowtide/driver/tournament.h"

#include <algorithm>
#include <utility>

#include "lowtide/driver/least_solve.h"

namespace lowtide::driver {

namespace {

constexpr std::size_t kContenders = 12;  // so that three remain after two halvings
constexpr std::size_t kEntrants = 3;     // for each phase: half of the parts, and two others
// The work that a list needs in a phase, in least_solve(): four turns. At least three lists: with
// two, fit needed .07 points more of the baseline peak over 14 networks.
constexpr double kSolves = 4;
constexpr std::size_t kFewest = 3;
constexpr int kPhases = 5;      // the last two have the best list only
constexpr int kEnterUntil = 2;  // phases: later entrants could not get ahead

}  // namespace

void Tournament::enter(const Transforms& transforms) {
  if (std::ranges::find(seen_, transforms) != seen_.end()) return;
  seen_.push_back(transforms);
  Contender one{.number = contenders_.size(), .transforms = transforms};
  if (!contest_.enter(one)) return;
  ranking_.push_back(&contenders_.emplace_back(std::move(one)));
}

// The number of lists that can get enough work in the first phase.
std::size_t Tournament::most() const {
  double least = 0;
  for (const Contender& one : contenders_) least += kSolves * least_solve(one.ops);
  const double part = std::max(0.0, contest_.work_left()) / kPhases / least;
  if (part >= 1) return kContenders;
  return std::max(kFewest,
                  static_cast<std::size_t>(part * static_cast<double>(contenders_.size())));
}

std::vector<Contender*> Tournament::choose(std::size_t most) const {
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, ranking_.size()));
  return {ranking_.begin(), ranking_.begin() + count};
}

std::vector<Contender*> Tournament::enter_near(const Contender& best) {
  const std::size_t before = ranking_.size();
  for (const Transforms& transforms : contest_.near(best)) {
    if (ranking_.size() == before + std::min(kEntrants, most_)) break;
    enter(transforms);
  }
  return {ranking_.begin() + static_cast<std::ptrdiff_t>(before), ranking_.end()};
}

// A phase: the best lists continue, and in some phases lists near the best one enter.
std::vector<Contender*> Tournament::next_phase(int phase) {
  std::ranges::stable_sort(ranking_, [&](const Contender* one, const Contender* other) {
    return contest_.better(*one, *other);
  });
  std::vector<Contender*> chosen = choose(std::max<std::size_t>(1, most_ >> phase));
  if (phase > kEnterUntil) return chosen;
  const std::vector<Contender*> entered = enter_near(*ranking_.front());
  chosen.insert(chosen.end(), entered.begin(), entered.end());
  return chosen;
}

void Tournament::run() {
  for (const Transforms& transforms : contest_.first()) {
    if (ranking_.size() == kContenders) break;
    enter(transforms);
  }
  if (ranking_.empty()) return;
  most_ = most();
  std::vector<Contender*> chosen = choose(most_);
  for (int phase = 0; !chosen.empty(); chosen = next_phase(phase)) {
    if (!contest_.run(chosen, 1.0 / (kPhases - phase)) || ++phase == kPhases) return;
  }
}

}  // namespace lowtide::driver

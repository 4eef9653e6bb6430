// Problem: of many lists of transforms, which one is worth most of the work?
//
// Idea: all lists get as much work in a phase. Then the better half goes on with twice the work,
// until one list is left. After the first phases lists that differ little from the best one enter:
// a few parts more or fewer, another split behind it, substitutions. Where there is little work,
// few lists begin, since a result of too little work says nothing.
//
// Source: successive halving (Jamieson and Talwalkar, AISTATS 2016), with results of searches in
// place of losses.
//
// Invariant: the best list of all that took part is never left for a worse one.
//
// Loses: where the best list needs long before it is ahead.
#include "lowtide/driver/tournament.h"

#include <algorithm>
#include <utility>

#include "lowtide/driver/least_solve.h"

namespace lowtide::driver {

namespace {

constexpr std::size_t kContenders = 12;  // as the half of the half of them still are three
constexpr std::size_t kEntrants = 3;  // of a phase: a list with half of the parts, and two others
// A list needs so much work in a phase, in least_solve(): four turns. Fewer than three lists are no
// choice: with two, fit came to .07 points more of the own peak over 14 networks.
constexpr double kSolves = 4;
constexpr std::size_t kFewest = 3;
constexpr int kPhases = 5;      // the last two are the best list's alone
constexpr int kEnterUntil = 2;  // phases: who enters later has no time to come ahead

}  // namespace

void Tournament::enter(const Transforms& transforms) {
  if (std::ranges::find(seen_, transforms) != seen_.end()) return;
  seen_.push_back(transforms);
  Contender one{.number = contenders_.size(), .transforms = transforms};
  if (!contest_.enter(one)) return;
  ranking_.push_back(&contenders_.emplace_back(std::move(one)));
}

// So many that each gets enough work in the first phase.
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

// A phase: the best go on, and in some phases lists near the best one join them.
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

// Problem: which few steps over the budget, as cut points, prove most together? More are not
// always better: little runs again between close cut points, and windows cost time for each.
//
// Idea: cutting planes. The first is the best single cut point. The windows' solution gives the
// kept tensors, and so the bytes in use at any other step. The step with the largest excess
// becomes the next cut point, and cut points whose price is zero are removed. First only bytes
// that are certainly in use count; once these fit everywhere, recomputations count too, as if they
// ran at once.
//
// Source: cutting planes for large linear programs (G. Dantzig, R. Fulkerson, S. Johnson, 1954);
// the windows are ours.
//
// Invariant: any set of cut points that follow one another in every plan proves a bound, so their
// selection needs no proof.
//
// Loses: if hundreds of steps slightly exceed the budget, as in random layered graphs. There many
// cut points prove more, for any selection.
#include "lowtide/solve/bounds/window/window_growth.h"

#include <algorithm>
#include <utility>

namespace lowtide::solve::bounds {

namespace {

constexpr int kPatience = 1, kMostBehind = 10;  // sets of cut points
constexpr std::int64_t kGain = 2000;            // a gain is more than this fraction
constexpr double kNegligible = 1e-4;            // of all prices
constexpr std::int64_t kLookedAtPerUnit = 64;   // links

}  // namespace

WindowGrowth::WindowGrowth(const Problem& problem, const CutScale& scale, CutPoint first,
                           std::vector<CutPoint> candidates, std::size_t most)
    : problem_(problem), scale_(scale), candidates_(std::move(candidates)), most_(most) {
  moments_.push_back(std::move(first));
  finished_ = most < 2;
}

void WindowGrowth::run(std::int64_t work, Ticks proven, Limits& limits) {
  const std::int64_t until = limits.work() + work;
  while (!finished_ && !limits.stopped() && limits.work() < until) {
    if (!windows_) {
      if (limits.spend(work_of_windows(problem_.graph, moments_.size()))) return;
      windows_.emplace(problem_, moments_, scale_, WindowSet::all);
      gains_ = false;
    }
    windows_->run(1, limits);
    gains_ |= windows_->bound() - bound_ > Ticks(bound_.count() / kGain);
    bound_ = std::max(bound_, windows_->bound());
    infeasible_ |= windows_->infeasible();
    if (windows_->finished() && !limits.stopped()) grow(proven, limits);
  }
}

const CutPoint* WindowGrowth::most_overloaded(Limits& limits) const {
  const auto links = static_cast<std::int64_t>(problem_.graph.link_count());
  for (const bool soon : {false, true}) {
    const CutPoint* worst = nullptr;
    double most = 0;
    for (const CutPoint& candidate : candidates_) {
      if (limits.spend(links / kLookedAtPerUnit)) return nullptr;
      const double over = windows_->overload(candidate, soon).value_or(0);
      if (over <= most) continue;
      most = over;
      worst = &candidate;
    }
    if (worst != nullptr) return worst;
  }
  return nullptr;
}

void WindowGrowth::grow(Ticks proven, Limits& limits) {
  const CutPoint* worst = most_overloaded(limits);
  if (limits.stopped()) return;
  if (gains_) {
    best_ = moments_;
    start_ = windows_->start();
  }
  idle_ = gains_ ? 0 : idle_ + 1;
  behind_ += bound_ < proven ? 1 : 0;
  finished_ = worst == nullptr || infeasible_ || idle_ > kPatience || behind_ > kMostBehind;
  if (!finished_) replace_moments(*worst);
  if (!finished_) return;
  windows_.reset();
  candidates_.clear();
}

void WindowGrowth::replace_moments(const CutPoint& added) {
  double prices = 0;
  for (std::size_t i = 0; i < moments_.size(); ++i) prices += windows_->price(i);
  std::vector<CutPoint> next{added};
  for (std::size_t i = 0; i < moments_.size(); ++i)
    if (windows_->price(i) > kNegligible * prices) next.push_back(std::move(moments_[i]));
  windows_.reset();
  moments_ = std::move(next);
  std::ranges::sort(moments_, {},
                    [&](const CutPoint& cut) { return problem_.graph.position(cut.op); });
  finished_ = moments_.size() > most_;
}

}  // namespace lowtide::solve::bounds

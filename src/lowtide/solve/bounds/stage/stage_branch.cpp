// Problem: the multipliers of the stages prove a bound for fractional runs; the optimum is higher.
//
// Idea: depth-first branch and bound on whether an op runs in a cell, in rounds. A round tests
// whether the model's optimum is below a target slightly above the proven bound. The target makes
// it cheap: at every cut, a cell is fixed as in the cut if deciding it otherwise would raise the
// bound to the target (reduced-cost fixing). Cells fixed at the root leave the network. When all
// nodes of a round are closed, the target is proven and the next round raises it. When all cells
// are decided the stages are independent, and one cut tests whether the kept tensors fit. It
// starts with few stages; a choice of runs that fits there is tested at all, and the most violated
// stage is added.
//
// Source: A. Land and A. Doig, Econometrica 1960; M. Held and R. Karp, The traveling-salesman
// problem and minimum spanning trees: part II, Mathematical Programming 1971 (ascent in the
// nodes); fixing by reduced costs.
//
// Invariant: within a round every plan below the target obeys the decisions of the current node,
// or of a node that is still to be visited.
//
// Loses: if hundreds of cells of similar value remain open near the optimum. A round then takes
// longer than the time left, and proves nothing.
#include "lowtide/solve/bounds/stage/stage_branch.h"

#include <algorithm>
#include <cmath>

#include "lowtide/solve/bounds/common/index.h"

namespace lowtide::solve::bounds {

namespace {

constexpr int kNodeSteps = 30;
constexpr int kRootSteps = 2000;
constexpr int kRootPatience = 25;
constexpr int kLook = 5;  // steps between two checks of a node's gain
constexpr double kFade = 0.05;
constexpr std::int64_t kFewNodes = 100;
constexpr std::int64_t kMostNodes = 1'000'000;  // in total
constexpr std::size_t kDeepest = 2000;
constexpr std::int64_t kMostTicks = std::int64_t{1} << 61;
constexpr double kGrowth = 2;   // of the cost of a round
constexpr int kMostMisses = 4;  // choices in a round that fit only at active stages

}  // namespace

StageBranch::StageBranch(const Problem& problem, std::span<const std::size_t> stages,
                         std::span<const std::size_t> first)
    : bound_(problem, stages),
      root_(stages.size(), 0.0),
      mean_(bound_.cells(), 0.5),
      nodes_before_(kFewNodes),
      most_nodes_(30 * kFewNodes),
      missing_(stages.size(), 0) {
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (std::find(first.begin(), first.end(), stages[i]) != first.end()) bound_.heed(i);
  bound_.build();
  for (std::size_t i = 0; i < bound_.cells(); ++i) {
    const Ticks left = Ticks(kMostTicks) - most_;
    capped_ |= bound_.time(i) > left;
    most_ += std::min(bound_.time(i), left);
  }
}

// Whether the last cut, which fits at the active stages, fits at all stages.
void StageBranch::judge_cut(Limits& limits) {
  const std::int32_t stage = bound_.most_over(limits);
  if (limits.stopped()) return;
  if (stage < 0) {
    best_ = std::min(best_, bound_.cost());
    aim_ = std::min(aim_, best_);
  } else if (!bound_.heeded(index(stage))) {
    missing_[index(stage)] = 1;
    ++misses_;
  }
}

void StageBranch::note_cut(Limits& limits) {
  for (const std::int32_t node : bound_.in_question())
    if (index(node) < mean_.size())
      mean_[index(node)] += kFade * ((bound_.runs(index(node)) ? 1.0 : 0.0) - mean_[index(node)]);
  if (bound_.fits() && bound_.cost() < std::min(best_, aim_) && misses_ == 0) judge_cut(limits);
}

void StageBranch::step(double top, double stride) {
  double norm = 0;
  for (const double over : bound_.over()) norm += over * over;
  if (!(norm > 0)) return;
  const double pace = stride * (top - bound_.value()) / norm;
  for (std::size_t i = 0; i < here_.size(); ++i)
    here_[i] = std::max(0.0, here_[i] + pace * bound_.over()[i]);
}

// Steps towards a value somewhat above the bound, since the optimum is unknown.
void StageBranch::find_root(std::int64_t until, Limits& limits) {
  Ascent& ascent = ascent_;
  if (ascent.count == 0) here_ = root_;
  aim_ = Ticks::max();
  for (; ascent.count < kRootSteps && ascent.reach > 1e-4; ++ascent.count) {
    if (limits.work() >= until || !bound_.evaluate(here_, limits)) return;
    note_cut(limits);
    if (bound_.value() > ascent.best) {
      if (bound_.value() > ascent.best * (1 + 5e-5)) ascent.idle = 0;
      ascent.best = bound_.value();
      root_ = here_;
      proven_ = std::max(proven_, bound_.proven());
    }
    if (++ascent.idle > kRootPatience) {
      ascent.idle = 0;
      ascent.reach *= 0.7;
      here_ = root_;
      if (!bound_.evaluate(here_, limits)) return;
    }
    step(std::max(ascent.best, bound_.scaled(Ticks(1))) * (1 + ascent.reach), 1);
  }
  ascent = {};
  rooted_ = true;
  if (stride_ == 0) stride_ = proven_.count() / 64;
}

void StageBranch::begin_round(Ticks enough) {
  stride_ = std::clamp<std::int64_t>(stride_, 1, most_.count() + 1);
  aim_ = std::min({proven_ + std::min(Ticks(stride_), Ticks::max() - proven_), best_, enough});
  multipliers_ = root_;
  nodes_ = 0;
  misses_ = 0;
  bound_.build();
  in_round_ = true;
}

void StageBranch::end_round() {
  proven_ = std::max(proven_, aim_);
  infeasible_ = aim_ > most_ && !capped_;
  finished_ = best_ <= proven_ || infeasible_ || all_nodes_ > kMostNodes;
  leave_round();
  // The cost of a round is exponential in its target, and should not grow too fast.
  const double growth = static_cast<double>(nodes_) / static_cast<double>(nodes_before_);
  const double change = std::log(kGrowth) / std::log(std::max(growth, 1.01));
  stride_ = static_cast<std::int64_t>(static_cast<double>(stride_) * std::clamp(change, 0.25, 2.0));
  nodes_before_ = std::max(nodes_, kFewNodes);
  most_nodes_ = std::max(most_nodes_, 16 * nodes_before_);
}

void StageBranch::leave_round() {
  path_.clear();
  bound_.undo(0);
  in_round_ = false;
  heed_missing();
}

void StageBranch::heed_missing() {
  for (std::size_t i = 0; i < missing_.size(); ++i) {
    if (missing_[i] == 0) continue;
    missing_[i] = 0;
    bound_.heed(i);
    rooted_ = false;
  }
  bound_.build();
}

void StageBranch::give_up_round() {
  leave_round();
  finished_ = stride_ <= 1 || all_nodes_ > kMostNodes;
  stride_ /= 4;
  most_nodes_ *= 2;
}

bool StageBranch::fix() {
  bool fixed = false;
  for (const std::int32_t node : bound_.in_question()) {
    const std::size_t cell = index(node);
    if (cell >= bound_.cells()) break;
    if (bound_.decided(cell) != Decision::open || bound_.proven_against(cell) < aim_) continue;
    bound_.decide(cell, bound_.runs(cell) ? Decision::yes : Decision::no);
    fixed = true;
  }
  return fixed;
}

// Whether no plan that obeys the decisions takes less than the target; false if stopped.
bool StageBranch::close_by_bound(Limits& limits) {
  if (!bound_.propagate()) return true;
  here_ = multipliers_;
  double best = -1, before = -1, stride = 1;
  for (int count = 1; count <= kNodeSteps; ++count) {
    if (!bound_.evaluate(here_, limits)) return false;
    note_cut(limits);
    if (bound_.proven() >= aim_) return true;
    if (bound_.value() > best) {
      best = bound_.value();
      multipliers_ = here_;
    } else {
      stride *= 0.8;
    }
    if (fix() && !bound_.propagate()) return true;
    const double top = bound_.scaled(aim_);
    if (count % kLook == 0) {
      if (before >= 0 && top - best > 4 * (best - before)) break;
      before = best;
    }
    step(top, stride);
  }
  return false;
}

std::int32_t StageBranch::choose() const {
  std::int32_t chosen = -1;
  double most = -1;
  for (const std::int32_t node : bound_.in_question()) {
    const std::size_t cell = index(node);
    if (cell >= bound_.cells()) break;
    if (bound_.decided(cell) != Decision::open) continue;
    const double score =
        std::min(mean_[cell], 1 - mean_[cell]) * static_cast<double>(bound_.time(cell).count());
    if (score <= most) continue;
    most = score;
    chosen = node;
  }
  return chosen;
}

void StageBranch::branch(Limits& limits) {
  const std::int32_t cell = choose();
  if (cell < 0) {
    if (bound_.can_fit(limits)) {
      // Cells that only other stages want may still run in the plans of this leaf, which all take
      // at least the cost of the decisions.
      aim_ = std::min(aim_, bound_.cost());
      judge_cut(limits);
    }
    if (limits.stopped()) return;
    return backtrack();
  }
  const bool runs = mean_[index(cell)] > 0.5;
  path_.push_back({bound_.mark(), cell, runs ? Decision::no : Decision::yes, multipliers_});
  bound_.decide(index(cell), runs ? Decision::yes : Decision::no);
}

void StageBranch::backtrack() {
  for (; !path_.empty(); path_.pop_back()) {
    Fork& fork = path_.back();
    bound_.undo(fork.mark);
    if (fork.next == Decision::open) continue;
    bound_.decide(index(fork.cell), fork.next);
    fork.next = Decision::open;
    multipliers_.swap(fork.multipliers);
    return;
  }
  end_round();
}

void StageBranch::visit(Limits& limits) {
  ++nodes_;
  ++all_nodes_;
  const bool root = path_.empty();
  const bool closed = close_by_bound(limits);
  if (limits.stopped()) return;
  if (closed) return backtrack();
  if (root) bound_.build();
  branch(limits);
}

void StageBranch::run(Ticks known, Ticks enough, std::int64_t work, Limits& limits) {
  const std::int64_t until = limits.work() + work;
  while (!finished_ && !limits.stopped() && limits.work() < until && proven_ < enough) {
    if (!rooted_) {
      find_root(until, limits);
      continue;
    }
    if (!in_round_) {
      proven_ = std::max(proven_, known);
      finished_ = best_ <= proven_ || (capped_ && proven_ >= most_);
      if (finished_ || proven_ >= enough) return;
      begin_round(enough);
    }
    visit(limits);
    if (in_round_ && misses_ > kMostMisses) {
      leave_round();
    } else if (in_round_ && (nodes_ > most_nodes_ || path_.size() > kDeepest)) {
      give_up_round();
    }
  }
}

}  // namespace lowtide::solve::bounds

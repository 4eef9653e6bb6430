// What is asked for plans that the search seldom comes to, and seldom gets far from: where the
// budget is tight, and where there is a link. Half of the lanes begin from what there was before
// these plans, until they are ahead.
#include <vector>

#include "lowtide/driver/portfolio.h"

namespace lowtide::driver {

namespace {

using solve::Trait;

constexpr std::int64_t kTightWork = 50;       // for each op
constexpr double kTightShare = 0.2;           // of the limits, at most
constexpr std::int64_t kLongestWork = 2'000;  // for each op, where there is no plan
constexpr double kLongestShare = 0.5;         // of the limits, at most
constexpr std::int64_t kLinkWork = 150;       // for each op
constexpr double kLinkShare = 0.3;            // of the limits, at most

}  // namespace

// What is constructive and for tight budgets, too, needs more there than it gets as one of many.
// Then comes what is for these alone: it computes far more again than the constructive ones, in far
// less memory. A search that begins from its plan seldom gets rid of all that again.
void Portfolio::ask_tight() {
  for (const solve::Solver* part : std::vector(unfinished_)) {
    if (context_.has_plan() || stop()) return;
    if (part->traits().has(Trait::tight)) run_one(part, kLongestWork * ops_, kLongestShare);
  }
  if (tight_ == nullptr || context_.has_plan() || stop()) return;
  const auto before = context_.smallest();
  const auto peak = context_.smallest_peak();
  run_one(tight_, kTightWork * (1000 + ops_), kTightShare);
  if (!before || context_.smallest_peak() == peak) return;
  best_elsewhere_ = {before, {Ticks::max(), *peak, {}}};
}

// It decides for all tensors at once which of them the link is for, at one price of the link, for
// which it looks in several runs. A search that begins from its plan seldom decides otherwise.
void Portfolio::ask_with_link(const solve::Solver* part, std::int64_t work) {
  const auto before = context_.has_plan() ? context_.best() : context_.smallest();
  const auto peak = context_.smallest_peak();
  run_one(part, work + kLinkWork * ops_, kLinkShare);
  if (before && best_transfers() && !best_elsewhere_.plan)
    best_elsewhere_ = {before, {Ticks::max(), *peak, {}}};
}

}  // namespace lowtide::driver

// Problem: which limit of the recursion gives the best plan for this budget?
//
// Idea: each power of two, from schedules that compute little again to those that need least
// memory, as far as they are not too long to be looked at. All are filtered; then the best get the
// exchanges, which take the longest.
//
// From: Kumar et al., NeurIPS 2019, section 4.3, where the limit trades memory for time.
//
// Invariant: what is tried does not depend on the limits of time or work; they only end it.
//
// Loses: where the best limit lies between two powers.
#include "lowtide/solve/limit_sweep.h"

#include <algorithm>
#include <utility>

#include "lowtide/solve/filter.h"
#include "lowtide/solve/legal_sequence.h"

namespace lowtide {

namespace {
constexpr int kRounds = 6;
constexpr std::size_t kLeads = 4;
constexpr double kPatience = 6;
constexpr std::size_t kMany = 2000;  // bags, of which fewer limits are tried
constexpr std::size_t kMostItems = 120'000, kGrowth = 48, kLeast = 2;
constexpr std::size_t kMostOffered = 20'000'000;
}  // namespace

std::optional<std::vector<OpId>> LimitSweep::sequence(std::size_t scheduler, std::size_t limit) {
  const std::size_t ops = context_.problem().graph.op_count();
  // What is filtered must be looked at more than once.
  const std::size_t most =
      filters_ ? std::max(std::min(kMostItems, 1000 + kGrowth * ops), kLeast * ops) : kMostOffered;
  const auto schedule = schedulers_[scheduler](limit, most);
  if (!schedule || context_.limits().spend(static_cast<std::int64_t>(schedule->size()) / 64))
    return std::nullopt;
  return legal_sequence(context_.problem(), *schedule);
}

// False if smaller limits need not be tried.
bool LimitSweep::attempt(std::size_t limit) {
  const auto sequence = this->sequence(schedulers_.size() - 1, limit);
  if (!sequence) return false;
  if (!filters_) {
    context_.offer_sequence(*sequence);
    return true;
  }
  // The same parts again.
  if (std::exchange(last_size_, sequence->size()) == sequence->size()) return true;
  Filter filter(context_, *sequence);
  if (context_.limits().spend(static_cast<std::int64_t>(sequence->size()) / 64)) return false;
  if (!filter.fits()) {
    if (!context_.has_plan()) context_.offer_sequence(*sequence);
    return true;
  }
  filter.fill(kRounds);
  if (context_.done()) return false;
  leads_.push_back({filter.duration(), schedulers_.size() - 1, limit});
  return true;
}

void LimitSweep::improve(const Lead& lead) {
  if (context_.done()) return;
  const auto sequence = this->sequence(lead.scheduler, lead.limit);
  if (!sequence) return;
  Filter filter(context_, *sequence);
  if (context_.limits().spend(static_cast<std::int64_t>(sequence->size()) / 64)) return;
  filter.fill(kRounds);
  filter.exchange(kPatience);
}

bool LimitSweep::begin() {
  const Graph& graph = context_.problem().graph;
  const bool empty = graph.op_count() == 0;
  // A schedule that is not to be filtered is not to be outdone by the order either.
  if (filters_ || empty) context_.offer_sequence(graph.order());
  context_.limits().spend(static_cast<std::int64_t>(graph.op_count()));
  return !empty && !(filters_ && context_.done());
}

void LimitSweep::run(Scheduler scheduler, std::size_t bags) {
  schedulers_.push_back(std::move(scheduler));
  if (limit_ > 0) {
    attempt(limit_);
    return;
  }
  const std::size_t step = bags > kMany ? 4 : 2;
  std::size_t limit = 1;
  while (limit <= bags) limit *= step;
  last_size_ = 0;
  const auto first = static_cast<std::ptrdiff_t>(leads_.size());
  for (; limit > 0 && !context_.done(); limit /= step)
    if (!attempt(limit)) break;
  const auto best = std::min_element(leads_.begin() + first, leads_.end());
  if (best != leads_.end()) improve(*best);
}

void LimitSweep::finish() {
  std::stable_sort(leads_.begin(), leads_.end());
  for (std::size_t i = 0; i < std::min(leads_.size(), kLeads); ++i) improve(leads_[i]);
  if (!context_.has_plan()) context_.offer_sequence(context_.problem().graph.order());
}

}  // namespace lowtide

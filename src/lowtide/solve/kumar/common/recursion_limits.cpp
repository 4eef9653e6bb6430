// Problem: which limit of the recursion gives the best plan for this budget?
//
// Idea: try each power of two, from schedules with few recomputations to those with the least
// memory. Filter all of them; then improve the best by exchanges, which take longest. Long
// schedules are postponed until the others are done, or until no other schedule is within the
// budget.
//
// Source: Kumar et al., NeurIPS 2019, section 4.3, where the limit trades memory for time.
//
// Invariant: limits of time or work only end the search; the order of trials does not depend on
// them.
//
// Loses: where the best limit lies between two powers.
#include "lowtide/solve/kumar/common/recursion_limits.h"

#include <algorithm>
#include <utility>

#include "lowtide/solve/kumar/common/legal_sequence.h"
#include "lowtide/solve/kumar/common/repetition_filter.h"

namespace lowtide::solve::kumar {

namespace {
constexpr int kRounds = 6;
constexpr std::size_t kCandidates = 4;
constexpr double kPatience = 6;
constexpr std::size_t kMany = 2000;  // bags, of which fewer limits are tried
constexpr std::size_t kMostItems = 120'000, kGrowth = 48, kLeast = 2;
constexpr std::size_t kMostAlone = 1'000'000;  // half a second and more for a round of the filter
constexpr std::size_t kMostOffered = 20'000'000;
}  // namespace

std::size_t RecursionLimits::most_items() const {
  if (!filters_) return kMostOffered;
  // A filtered schedule must be short enough to be examined several times.
  const std::size_t ops = context_.problem().graph.op_count();
  return std::max(std::min(kMostItems, 1000 + kGrowth * ops), kLeast * ops);
}

std::optional<std::vector<OpId>> RecursionLimits::sequence(std::size_t scheduler, std::size_t limit,
                                                           std::size_t most) {
  const auto schedule = schedulers_[scheduler](limit, most);
  if (context_.limits().stopped()) return std::nullopt;
  if (!schedule || schedule->length > static_cast<double>(kMostOffered)) {
    left_out_ = true;
    return std::nullopt;
  }
  if (context_.limits().spend(static_cast<std::int64_t>(schedule->ops.size()) / 64))
    return std::nullopt;
  if (schedule->ops.empty()) return schedule->ops;
  return legal_sequence(context_.problem(), schedule->ops);
}

// False if smaller limits need not be tried.
bool RecursionLimits::attempt(std::size_t limit, std::size_t step) {
  const std::size_t scheduler = schedulers_.size() - 1;
  const auto sequence = this->sequence(scheduler, limit, most_items());
  if (!sequence) return false;
  if (sequence->empty()) {
    too_long_.push_back({scheduler, limit, step, last_size_});
    return false;
  }
  if (!filters_) {
    context_.offer_sequence(*sequence);
    return true;
  }
  // This limit divides the graph into the same components as the one before.
  if (std::exchange(last_size_, sequence->size()) == sequence->size()) return true;
  return fill(*sequence, scheduler, limit);
}

// False if smaller limits need not be tried.
bool RecursionLimits::attempt_long(TooLong& what) {
  const auto sequence = this->sequence(what.scheduler, what.limit, kMostOffered);
  if (!sequence) return false;
  if (std::exchange(what.size, sequence->size()) == sequence->size()) return true;
  context_.offer_sequence(*sequence);
  if (context_.limits().spend(static_cast<std::int64_t>(sequence->size()) / 8)) return false;
  if (!context_.has_plan() || sequence->size() > kMostAlone) return true;
  return fill(*sequence, what.scheduler, what.limit);
}

// False if no time or work is left.
bool RecursionLimits::fill(const std::vector<OpId>& sequence, std::size_t scheduler,
                           std::size_t limit) {
  RepetitionFilter filter(context_, sequence);
  if (context_.limits().spend(static_cast<std::int64_t>(sequence.size()) / 64)) return false;
  if (!filter.fits()) {
    if (!context_.has_plan()) context_.offer_sequence(sequence);
    return true;
  }
  filter.fill(kRounds);
  if (context_.done()) return false;
  candidates_.push_back({filter.duration(), scheduler, limit});
  return true;
}

void RecursionLimits::improve(Candidate& candidate) {
  if (context_.done() || std::exchange(candidate.improved, true)) return;
  const auto sequence = this->sequence(candidate.scheduler, candidate.limit, kMostOffered);
  if (!sequence) return;
  RepetitionFilter filter(context_, *sequence);
  if (context_.limits().spend(static_cast<std::int64_t>(sequence->size()) / 64)) return;
  filter.fill(kRounds);
  filter.exchange(kPatience);
}

bool RecursionLimits::begin() {
  const Graph& graph = context_.problem().graph;
  const bool empty = graph.op_count() == 0;
  // Without the filter, the given order does not compete with the schedules.
  if (filters_ || empty) context_.offer_sequence(graph.order());
  context_.limits().spend(static_cast<std::int64_t>(graph.op_count()));
  return !empty && !(filters_ && context_.done());
}

void RecursionLimits::run(Scheduler scheduler, std::size_t bags) {
  schedulers_.push_back(std::move(scheduler));
  const std::size_t step = bags > kMany ? 4 : 2;
  std::size_t limit = std::max<std::size_t>(limit_, 1);
  if (limit_ == 0)
    while (limit <= bags) limit *= step;
  last_size_ = 0;
  const auto first = static_cast<std::ptrdiff_t>(candidates_.size());
  for (; limit > 0 && !context_.done(); limit = limit_ > 0 ? 0 : limit / step)
    if (!attempt(limit, limit_ > 0 ? SIZE_MAX : step)) break;
  const auto best = std::min_element(candidates_.begin() + first, candidates_.end());
  if (best != candidates_.end() && limit_ == 0) improve(*best);
}

void RecursionLimits::run_next_long() {
  if (!filters_) return;
  for (TooLong& each : std::exchange(too_long_, {})) {
    if (context_.done()) return;
    if (attempt_long(each) && each.limit >= each.step)
      too_long_.push_back({each.scheduler, each.limit / each.step, each.step, each.size});
  }
}

void RecursionLimits::run_long_until_feasible() {
  while (has_long() && !context_.has_plan() && !context_.done()) run_next_long();
}

void RecursionLimits::improve_best() {
  std::stable_sort(candidates_.begin(), candidates_.end());
  for (std::size_t i = 0; i < std::min(candidates_.size(), kCandidates); ++i)
    improve(candidates_[i]);
}

void RecursionLimits::offer_own_order() {
  if (!context_.has_plan()) context_.offer_sequence(context_.problem().graph.order());
}

std::string RecursionLimits::why_no_plan() const {
  if (context_.has_plan() || !context_.smallest_peak()) return {};
  std::string why = "the schedule with the smallest peak needs " +
                    std::to_string(context_.smallest_peak()->count()) + " bytes";
  if (left_out_) why += "; others are too long to be looked at";
  return why;
}

}  // namespace lowtide::solve::kumar

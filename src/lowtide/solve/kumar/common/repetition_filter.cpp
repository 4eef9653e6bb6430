// Problem: a schedule within the budget leaves memory unused. Which of its recomputations can be
// removed?
//
// Idea: a recomputation is removed if its tensor is held from the computation before; computations
// that served only this one are removed with it. Each position has a price for memory. The
// recomputation that saves most time for its price is removed first. The first prices are equal at
// all positions where the graph would pass the budget without recomputation, and about zero
// elsewhere. After each round, the price moves to the positions where the plan was full, since
// recomputations compete for these. At the end come exchanges: one tensor is no longer held, and
// the best other tensors take the free memory.
//
// Source: ours; Kumar et al. (NeurIPS 2019) stop at the schedule. An exchange is tried only if its
// time is close to the price of its memory.
//
// Invariant: the sequence is legal; once it is within the budget, it stays so.
//
// Loses: recomputations stay where the schedule has them. If these places are poor, as with a
// recursion limit that leaves few, large components, the filter cannot help.
#include "lowtide/solve/kumar/common/repetition_filter.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::kumar {

namespace {
constexpr double kNever = 1e-9;          // share of the price that lies on all positions alike
constexpr double kMemory = 0.5;          // of the prices of the round before
constexpr int kPasses = 8;               // of one round, as long as they find something
constexpr double kDoubtful = 2;          // times dearer to hold than the rate, or cheaper
constexpr std::size_t kTakes = 8;        // candidates that an exchange tries
constexpr std::size_t kListEvery = 500;  // exchanges
}  // namespace

RepetitionFilter::RepetitionFilter(Context& context, std::span<const OpId> sequence)
    : context_(context),
      table_(context.problem(), without_unread(context.problem(), sequence)),
      random_(context.seed() + 1) {}

bool RepetitionFilter::spend(std::int64_t evaluations) {
  owed_ += 2 * evaluations + table_.work() - charged_;
  charged_ = table_.work();
  const std::int64_t units = owed_ / 8;
  owed_ -= 8 * units;
  return context_.limits().spend(units);
}

void RepetitionFilter::offer() {
  const auto sequence = table_.sequence();
#if LOWTIDE_DEBUG_CHECKS
  const Plan plan = plan_from_sequence(context_.problem().graph, sequence);
  const Cost cost = simulate(context_.problem().graph, plan).cost;
  check(cost.peak <= table_.peak() && cost.duration == table_.duration(),
        "the filter lost count of bytes or time");
#endif
  context_.offer_sequence(sequence);
}

double RepetitionFilter::score(Item item) const {
  const auto saving = table_.saving(item, prices_);
  const auto time = static_cast<double>(saving.time);
  return saving.price <= 0 ? 1e30 * (1 + time) : time / saving.price;
}

void RepetitionFilter::set_prices(const std::vector<double>& price) {
  double sum = 0;
  for (double each : price) sum += each;
  const double least = kNever / static_cast<double>(price.size() + 1);
  prices_.assign(price.size() + 1, 0);
  for (std::size_t i = 0; i < price.size(); ++i)
    prices_[i + 1] = prices_[i] + (sum > 0 ? price[i] / sum : 0) + least;
}

std::vector<double> RepetitionFilter::first_prices() const {
  const auto bytes = table_.without_repetitions();
  std::vector<double> price(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    price[i] = Bytes(bytes[i]) > context_.problem().budget ? 1 : 0;
  return price;
}

void RepetitionFilter::learn(std::vector<double>& price) const {
  const auto budget = static_cast<double>(context_.problem().budget.count());
  const auto profile = table_.profile();
  std::vector<double> full(price.size(), 0);
  double sum = 0, sum_full = 0;
  for (std::size_t i = 0; i < price.size(); ++i) {
    const double free = 1 - static_cast<double>(profile[i]) / budget;
    if (table_.present(Item(i))) full[i] = free < 0.02 ? 1 : free < 0.1 ? 0.1 : 0;
    sum += price[i];
    sum_full += full[i];
  }
  if (sum_full == 0) return;
  for (std::size_t i = 0; i < price.size(); ++i)
    price[i] = (sum > 0 ? kMemory * price[i] / sum : 0) + (1 - kMemory) * full[i] / sum_full;
}

bool RepetitionFilter::try_removing(Item item) {
  const std::size_t before = table_.log_size();
  table_.remove(item);
  if (fits()) return true;
  table_.restore(before);
  return false;
}

// Removes by score, which is updated when an item reaches the top; repeats while items are removed.
void RepetitionFilter::fill_once() {
  const auto later = [](const Scored& a, const Scored& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  for (int pass = 0; pass < kPasses; ++pass) {
    std::vector<Scored> scored;
    for (std::size_t i = 0; i < table_.size(); ++i) {
      const Item item(i);
      if (!table_.removable(item)) continue;
      scored.emplace_back(score(item), item);
      if (spend(1)) return;
    }
    std::priority_queue<Scored, std::vector<Scored>, decltype(later)> queue(later,
                                                                            std::move(scored));
    bool removed = false;
    while (!queue.empty()) {
      const auto [expected, item] = queue.top();
      queue.pop();
      if (spend(1)) return;
      if (!table_.removable(item)) continue;
      const double now = score(item);
      if (now < expected * (1 - 1e-9) && !queue.empty() && now < queue.top().first)
        queue.emplace(now, item);
      else
        removed |= try_removing(item);
    }
    if (!removed) return;
  }
}

// Removes recomputations whose tensors fit at every position. They never come back, so that the
// table shrinks.
void RepetitionFilter::fill_free() {
  const auto price = first_prices();
  prices_.assign(price.size() + 1, 0);
  for (std::size_t i = 0; i < price.size(); ++i) prices_[i + 1] = prices_[i] + price[i];
  for (std::size_t i = table_.size(); i > 0; --i) {
    const Item item(i - 1);
    if (table_.removable(item) && table_.saving(item, prices_).price <= 0) try_removing(item);
    if (spend(1)) return;
  }
  table_ = EditableSequence(context_.problem(), table_.sequence());
  charged_ = 0;
}

void RepetitionFilter::fill(int rounds) {
  if (!fits() || table_.size() == 0) return;
  // Offers the sequence unchanged: it is a plan, if a long one, and no later one has a lower peak.
  offer();
  fill_free();
  if (context_.limits().stopped()) return;
  std::vector<double> price = first_prices(), best_price = price;
  Ticks best = Ticks::max();
  int stale = 0;
  for (int round = 0; round < rounds && stale < 2; ++round) {
    table_.restore(0);
    set_prices(price);
    fill_once();
    ++stale;
    if (table_.duration() < best) {
      best = table_.duration();
      best_price = price;
      stale = 0;
      offer();
    }
    if (context_.done()) return;
    learn(price);
  }
  if (stale == 0) return;
  table_.restore(0);
  set_prices(best_price);
  fill_once();
}

bool RepetitionFilter::list_moves() {
  candidates_.clear();
  held_.clear();
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const Item item(i);
    if (!table_.removable(item)) continue;
    candidates_.emplace_back(-score(item), item);
    if (spend(1)) return false;
  }
  if (candidates_.empty()) return false;
  std::sort(candidates_.begin(), candidates_.end());
  rate_ = -candidates_[candidates_.size() / 10].first;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const Item item(i);
    if (table_.present(item)) continue;
    const auto holding = table_.holding(item, prices_);
    if (holding.price * rate_ * kDoubtful > static_cast<double>(holding.time))
      held_.push_back(item);
    if (spend(1)) return false;
  }
  return !held_.empty();
}

bool RepetitionFilter::try_exchange() {
  const Item back = held_[random_.below(held_.size())];
  if (table_.present(back)) return false;
  const std::size_t before = table_.log_size();
  const Ticks duration = table_.duration();
  table_.reinstate(back, prices_, rate_);
  if (fits()) {
    const std::size_t span = candidates_.size();
    std::size_t next = span > 3 * kTakes ? random_.below(span / 3) : 0;
    for (std::size_t k = 0; k < kTakes && next < span; ++k, ++next) {
      const Item item = candidates_[next].second;
      if (item != back && table_.removable(item)) try_removing(item);
    }
    spend(static_cast<std::int64_t>(kTakes) / 4);
    if (table_.present(back) && table_.duration() <= duration) return table_.duration() < duration;
  }
  table_.restore(before);
  return false;
}

void RepetitionFilter::exchange(double patience) {
  if (!fits() || table_.size() == 0) return;
  double waited = 0;
  bool changed = false;
  for (std::size_t tries = 0;; ++tries) {
    if (context_.done() || (tries % kListEvery == 0 && !list_moves())) break;
    if (waited > patience * static_cast<double>(held_.size())) break;
    ++waited;
    if (try_exchange()) {
      changed = true;
      waited = 0;
    }
  }
  if (changed) offer();
}

}  // namespace lowtide::solve::kumar

// Problem: an order is far over the budget. Over which retention gaps should tensors be evicted, to
// be recomputed or fetched right before their next use?
//
// Idea: lazy greedy. A heap orders the gaps by break-even price: the price of one byte over the
// budget in one step from which on evicting the gap pays. The first price is a lower bound, the
// gap's own recomputation divided by the largest possible relief. The cheapest gap is priced again,
// with the cost of its inputs at that price. It is evicted if it is still the cheapest, together
// with the chain of inputs that cost more to hold; otherwise it returns to the heap. Relief shrinks
// as the profile approaches the budget, so prices rise, and most gaps are never priced twice. An
// inserted recomputation adds gaps of its own to the heap, and makes some others cheaper. So when
// many gaps have turned out more expensive than expected, all are priced again. At the end tensors
// whose eviction has become superfluous are held again, the most expensive eviction first.
//
// With a link a gap can also be swapped. The price of a swap is the time of its copies times a link
// price (ticks of the plan per tick of copying), one number for the whole run. If it is too low,
// computation waits for copies; if it is too high, the link is idle. A first run without the link
// bounds it. Further runs search for the best link price, by doubling or halving and then by
// smaller steps, as long as plans get shorter.
//
// Invariant: the state's profile is exact, so the sequence keeps the budget once no step exceeds
// it.
//
// Loses: decisions are final, except evictions that are superfluous at the end. `search`, which
// starts from this plan, can revise them.
#include "lowtide/solve/local/common/drop_gaps.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "lowtide/solve/local/common/moves/moves.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::local {

namespace {

constexpr double kSlack = 1.02;  // a price that rose by a smaller factor counts as unchanged
constexpr double kRegret = 1.5;  // at the end an eviction may cost this factor times its price
// A pass ends after this many gaps whose price had risen: earlier evictions may have made other
// gaps cheaper, which are still in the heap at their old price.
constexpr std::size_t kMostPasses = 64;
constexpr std::size_t kLeastFailed = 20;
constexpr double kFailedShare = 0.02;  // of the gaps at its beginning, and in each pass more
constexpr double kGrowth = 1.2;
// Prices of the link, in ticks of the run for a tick of a copy.
constexpr double kNoLink = Profile::kNever;
constexpr double kFirstLinkPrice = 0.08, kLeastLinkPrice = 0.002, kMostLinkPrice = 2;
constexpr std::array<double, 2> kLinkSteps = {2, 1.4};
constexpr double kLinkedRun = 3;     // a run with the link takes about this many times as long
constexpr double kLinkFull = 0.5;    // copies in, as a share of the plan: the link is full
constexpr double kIdle = 0.2;        // copies below this share of the plan: the link is idle
constexpr std::int64_t kLooks = 64;  // gaps priced between two polls
constexpr std::int64_t kLooksOfWork = 16;

struct Gap {
  Moves::Prices prices;  // lower bounds
  Value value;
  Item use;
  bool swaps() const { return prices.swap < prices.again; }
  double price() const { return std::min(prices.swap, prices.again); }
  bool operator<(const Gap& other) const { return price() > other.price(); }  // the cheapest first
};

// The result of a run; smaller is better.
struct Reached {
  double over, duration;  // bytes over the budget, summed over the steps; ticks
  double fetches;         // ticks of all copies in
  bool operator<(const Reached& other) const {
    return std::tie(over, duration) < std::tie(other.over, other.duration);
  }
};

class Run {
 public:
  Run(const Network& network, Context& context)
      : network_(network),
        context_(context),
        state_(network),
        moves_(network, state_, context.random()) {}

  // A tick of a copy costs `link_price` ticks of the run; kNoLink: no copies.
  Reached run(const std::vector<OpId>& order, double link_price) {
    link_price_ = link_price;
    moves_.switches.swap = network_.transfers && link_price < kNoLink;
    const std::vector<Event> events = events_from(order);
    state_.load(events);
    double share = kFailedShare;
    for (std::size_t pass = 0; pass < kMostPasses; ++pass, share *= kGrowth)
      if (state_.profile().over() <= 0 || !drop_gaps(share)) break;
    if (state_.within()) hold_again();
    context_.offer_events(without_unread(context_.problem(), state_.sequence()));
    return {std::max(0.0, state_.profile().over()), state_.duration(), state_.fetch_time()};
  }

  // After a run without the link: the price at which the link would just be full, if the
  // recomputations with the longest time relative to their copies were copied instead.
  double guess_link_price() const {
    std::vector<std::pair<double, double>> repeats;  // least price for a copy; its time in
    for (std::size_t i = 0; i < state_.repeat_count(); ++i) {
      const Node node = state_.node(state_.repeat(i));
      if (!network_.is_op(node)) continue;
      double in = 0, both = 0;
      for (const Value value : network_.outputs(node)) {
        in += network_.copy_in[value];
        both += network_.copy_in[value] + network_.copy_out[value];
      }
      if (both > 0) repeats.emplace_back(network_.time_of(node) / both, in);
    }
    std::ranges::sort(repeats, std::greater());
    double left = kLinkFull * state_.duration();
    for (const auto& [price, in] : repeats)
      if ((left -= in) <= 0) return std::clamp(price, kLeastLinkPrice, kMostLinkPrice);
    return kFirstLinkPrice;
  }

 private:
  bool stopped() {
    if (++looks_ % kLooks != 0) return context_.done();
    const std::int64_t work = state_.work();
    context_.limits().spend(kLooks / kLooksOfWork + (work - std::exchange(work_seen_, work)) / 16);
    return context_.done();
  }

  void add(Value value, Item use) {
    if (network_.bytes_of(value) == 0) return;
    push({moves_.least_prices(value, use, link_price_), value, use});
  }
  void push(const Gap& gap) {
    if (gap.price() < Profile::kNever) heap_.push(gap);
  }

  // Ticks, with those of copies in and out at their price.
  double cost() const {
    const double copies = moves_.switches.swap ? 2 * link_price_ * state_.fetch_time() : 0;
    return state_.duration() + copies;
  }

  // Until this share of all gaps had risen in price. Returns whether one was dropped.
  bool drop_gaps(double share) {
    heap_ = {};
    for (const Value value : network_.bytes.ids()) {
      for (const Node user : network_.users(value))
        for (Item use = state_.last_of(user); use != kNone; use = state_.previous(use)) {
          add(value, use);
          if (stopped()) return false;
        }
    }
    const std::size_t most_failed =
        std::max(kLeastFailed, static_cast<std::size_t>(share * static_cast<double>(heap_.size())));
    std::size_t failed = 0;
    bool dropped = false;
    while (!heap_.empty() && state_.profile().over() > 0 && !(dropped && failed > most_failed)) {
      if (stopped()) return false;
      Gap gap = heap_.top();
      heap_.pop();
      const double seemed = moves_.price = gap.price();
      const Moves::Prices now = moves_.prices_of_gap(gap.value, gap.use, link_price_);
      // The price had risen.
      gap.prices = {std::max(gap.prices.again, now.again), std::max(gap.prices.swap, now.swap)};
      if (gap.price() > kSlack * seemed)
        push(gap);
      else if (drop(gap))
        dropped = true;
      else
        ++failed;
    }
    return dropped;
  }

  bool drop(Gap gap) {
    const double over_before = state_.profile().over(), cost_before = cost();
    const bool swaps = gap.swaps();
    if (swaps)
      moves_.swap_before(gap.value, gap.use);
    else
      moves_.drop_before(gap.value, gap.use);
    if (!state_.changed()) return false;
    state_.settle();
    const double relief = over_before - state_.profile().over(), more = cost() - cost_before;
    if (relief <= 0 || more > kRegret * gap.price() * relief) {
      state_.undo();
      (swaps ? gap.prices.swap : gap.prices.again) = relief > 0 ? more / relief : Profile::kNever;
      push(gap);
      return false;
    }
    std::vector<Item> added;
    state_.for_inserted([&](Item item) { added.push_back(item); });
    state_.commit();
    for (const Item item : added) {
      const Node node = state_.node(item);
      if (network_.is_hold(node)) continue;
      for (const Value value : network_.inputs(node)) add(value, item);
      for (const Value value : network_.outputs(node))
        if (const Item next = state_.first_use(value, state_.slot(item), Slot(state_.slot_count()));
            next != kNone)
          add(value, next);
    }
    return true;
  }

  void hold_again() {
    std::vector<std::pair<double, Item>> repeats;
    for (std::size_t i = 0; i < state_.repeat_count(); ++i) {
      const Item item = state_.repeat(i);
      if (!network_.is_op(state_.node(item))) continue;
      repeats.emplace_back(-network_.time_of(state_.node(item)), item);
    }
    std::sort(repeats.begin(), repeats.end());
    for (const auto& [time, item] : repeats) {
      if (stopped()) return;
      if (!state_.present(item) || state_.is_first(item) || !moves_.fits_without(item)) continue;
      const double before = cost();
      moves_.remove_chain(item);
      state_.settle();
      state_.within() && cost() <= before ? state_.commit() : state_.undo();
    }
  }

  const Network& network_;
  Context& context_;
  State state_;
  Moves moves_;
  std::priority_queue<Gap> heap_;
  std::int64_t looks_ = 0, work_seen_ = 0;
  double link_price_ = kNoLink;
};

double find_link_price(Run& run, const std::vector<OpId>& order, Context& context) {
  double price = run.guess_link_price();
  Reached best = run.run(order, price);
  while (!context.done() && price > kLeastLinkPrice && best.fetches < kIdle * best.duration)
    best = run.run(order, price /= 2);
  for (const double step : kLinkSteps)
    for (const double times : {step, 1 / step}) {
      const double before = price;
      while (!context.done() && price < kMostLinkPrice && price > kLeastLinkPrice) {
        const Reached next = run.run(order, price * times);
        if (!(next < best)) break;
        best = next;
        price *= times;
      }
      if (price != before) break;
    }
  return price;
}

}  // namespace

Support supports_dropping(const Problem& problem) {
  if (std::string why = too_large(problem); !why.empty()) return Support::no(std::move(why));
  if (problem.graph.has_tensors_on_host())
    return Support::no("it does not plan for tensors at home on the host");
  return least_time_only(problem);
}

void drop_gaps(std::span<const std::vector<OpId>> orders, Context& context) {
  const Network network(context.problem());
  Run run(network, context);
  std::optional<double> link_price;
  for (const auto& order : orders) {
    // Both take tens of milliseconds at 100,000 ops.
    context.limits().spend(static_cast<std::int64_t>(network.op_count() / 4));
    if (context.done()) break;
    const double before = context.limits().used();
    run.run(order, kNoLink);
    const double used = context.limits().used();
    if (!network.transfers || kLinkedRun * (used - before) > 1 - used || context.done()) continue;
    if (link_price)
      run.run(order, *link_price);
    else
      link_price = find_link_price(run, order, context);
  }
}

}  // namespace lowtide::solve::local

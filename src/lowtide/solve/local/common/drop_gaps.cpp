// Problem: an order is far over the budget; which tensors should be made again right before a use,
// or be fetched from the host, and not be held until then?
//
// Idea: a lazy greedy choice. A heap holds, for each gap before a use, the price of a byte over the
// budget, in one step, from which on it pays to drop it: at first a lower bound, its own
// computation for all the relief there is. The cheapest is priced anew, with its inputs at that
// price, and dropped if that still holds, with the chain of inputs that are dearer to hold; else it
// goes back. Relief shrinks as the budget is come near to, so prices rise, and most gaps are never
// looked at twice. What is put in makes gaps of its own, which join the heap; it also makes some
// cheaper, so once many have cost more than was thought all are priced anew. At the end whatever
// has become superfluous is held again, the dearest first.
//
// With a link a gap can be swapped, too: its price then is that of its copies, at so many ticks of
// the run for a tick of a copy. That price of the link is one number for the whole run, and decides
// which tensors go where: too low, and copies are waited for; too high, and the link stands idle.
// So after a run without the link, which says where it may lie, others look for it, in steps that
// double or halve it and then in shorter ones, as long as the plan gets shorter.
//
// Invariant: the state's profile is exact, so the sequence keeps the budget once nothing is over
// it.
//
// Loses: a choice is not taken back but for those that the end finds superfluous; the search, which
// begins from it, does that.
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

constexpr double kSlack = 1.02;  // a price that rose by less is the same
constexpr double kRegret = 1.5;  // times its price: what a byte may cost once all is done
// A pass ends when so many gaps were dearer than they seemed: what was dropped since it began may
// have made others cheap, and these wait at a price of before.
constexpr std::size_t kMostPasses = 64;
constexpr std::size_t kLeastFailed = 20;
constexpr double kFailedShare = 0.02;  // of the gaps at its beginning, and in each pass more
constexpr double kGrowth = 1.2;
// Prices of the link, in ticks of the run for a tick of a copy.
constexpr double kNoLink = Profile::kNever;
constexpr double kFirstLinkPrice = 0.08, kLeastLinkPrice = 0.002, kMostLinkPrice = 2;
constexpr std::array<double, 2> kLinkSteps = {2, 1.4};
constexpr double kLinkedRun = 3;     // with the link, runs take so much longer, about
constexpr double kLinkFull = 0.5;    // of the run, copies in
constexpr double kIdle = 0.2;        // copies that take less of the run leave the link idle
constexpr std::int64_t kLooks = 64;  // gaps looked at between two polls
constexpr std::int64_t kLooksOfWork = 16;

struct Gap {
  Moves::Prices prices;  // at least
  Value value;
  Item use;
  bool swaps() const { return prices.swap < prices.again; }
  double price() const { return std::min(prices.swap, prices.again); }
  bool operator<(const Gap& other) const { return price() > other.price(); }  // the cheapest first
};

// What a run comes to; the least first.
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

  // A tick of a copy costs `link_price` ticks of the run; kNoLink: nothing is copied.
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

  // Of a run without the link: at which as much of what is made again would be copied as fits on
  // the link, that which takes longest for its copies.
  double guess_link_price() const {
    std::vector<std::pair<double, double>> repeats;  // price from which on it is copied, copy in
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

  // Ticks, with those of copies at their price, in and out.
  double cost() const {
    const double copies = moves_.switches.swap ? 2 * link_price_ * state_.fetch_time() : 0;
    return state_.duration() + copies;
  }

  // Until so many of all gaps were dearer than they seemed. Says whether one was dropped.
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
      // What was tried was dearer than it seems.
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
    // Both take tens of milliseconds where there are 100,000 ops.
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

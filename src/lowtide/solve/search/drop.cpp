// Problem: an order is far over the budget; which tensors should be made again right before a use,
// and not be held until then?
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
// Invariant: the state's profile is exact, so the sequence keeps the budget once nothing is over
// it.
//
// Loses: a choice is not taken back but for those that the end finds superfluous; the search, which
// begins from it, does that.
#include "lowtide/solve/search/drop.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "lowtide/solve/interface/starts.h"
#include "lowtide/solve/search/moves/moves.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::search {

namespace {

constexpr double kSlack = 1.02;  // a price that rose by less is the same
constexpr double kRegret = 1.5;  // times its price: what a byte may cost once all is done
// A pass ends when so many gaps were dearer than they seemed: what was dropped since it began may
// have made others cheap, and these wait at a price of before.
constexpr std::size_t kMostPasses = 64;
constexpr std::size_t kLeastFailed = 20;
constexpr double kFailedShare = 0.02;  // of the gaps at its beginning, and in each pass more
constexpr double kGrowth = 1.2;
constexpr std::int64_t kLooks = 64;  // gaps looked at between two polls
constexpr std::int64_t kLooksOfWork = 16;

struct Gap {
  double price;
  Value value;
  Item use;
  bool operator<(const Gap& other) const { return price > other.price; }  // the cheapest first
};

class Run {
 public:
  Run(const Network& network, Context& context)
      : network_(network),
        context_(context),
        state_(network),
        moves_(network, state_, context.random()) {}

  void run(const std::vector<OpId>& order) {
    const std::vector<Event> events = events_from(order);
    state_.load(events);
    double share = kFailedShare;
    for (std::size_t pass = 0; pass < kMostPasses; ++pass, share *= kGrowth)
      if (state_.profile().over() <= 0 || !drop_gaps(share)) break;
    if (state_.within()) hold_again();
    context_.offer_events(without_unread(context_.problem(), state_.sequence()));
  }

 private:
  bool stopped() {
    if (++looks_ % kLooks != 0) return context_.done();
    const std::int64_t work = state_.work();
    context_.limits().spend(kLooks / kLooksOfWork + (work - std::exchange(work_seen_, work)) / 16);
    return context_.done();
  }

  void add(Value value, Item use) {
    if (network_.bytes_of(value) == 0 || !network_.may_repeat(network_.maker(value))) return;
    const double price = moves_.least_price(value, use);
    if (price < Profile::kNever) heap_.push({price, value, use});
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
      const Gap gap = heap_.top();
      heap_.pop();
      moves_.price = gap.price;
      const double now = moves_.price_of_gap(gap.value, gap.use);
      if (now == Profile::kNever) continue;
      if (now > kSlack * gap.price)
        heap_.push({now, gap.value, gap.use});
      else if (drop(gap))
        dropped = true;
      else
        ++failed;
    }
    return dropped;
  }

  bool drop(const Gap& gap) {
    const double over = state_.profile().over(), time = state_.duration();
    moves_.drop_before(gap.value, gap.use);
    if (!state_.changed()) return false;
    const double relief = over - state_.profile().over(), cost = state_.duration() - time;
    if (relief <= 0 || cost > kRegret * gap.price * relief) {
      state_.undo();
      if (relief > 0) heap_.push({cost / relief, gap.value, gap.use});
      return false;
    }
    std::vector<Item> added;
    state_.for_inserted([&](Item item) { added.push_back(item); });
    state_.commit();
    for (const Item item : added) {
      const Node node = state_.node(item);
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
      repeats.emplace_back(-network_.time_of(state_.node(item)), item);
    }
    std::sort(repeats.begin(), repeats.end());
    for (const auto& [time, item] : repeats) {
      if (stopped()) return;
      if (!state_.present(item) || state_.is_first(item) || !moves_.fits_without(item)) continue;
      moves_.remove_chain(item);
      state_.within() ? state_.commit() : state_.undo();
    }
  }

  const Network& network_;
  Context& context_;
  State state_;
  Moves moves_;
  std::priority_queue<Gap> heap_;
  std::int64_t looks_ = 0, work_seen_ = 0;
};

class Drop final : public Solver {
 public:
  std::string_view name() const override { return "drop"; }
  std::string_view summary() const override {
    return "tensors that wait are made again instead, those first in which a byte costs least";
  }
  Traits traits() const override { return {Trait::constructive, Trait::tight}; }
  Support supports(const Problem& problem) const override { return drop_supports(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    context.offer_events(own_events(problem.graph));
    if (!context.done()) drop_from(orders_to_try(context), context);
    return context.finish();
  }
};

}  // namespace

Support drop_supports(const Problem& problem) {
  if (std::string why = too_large(problem); !why.empty()) return Support::no(std::move(why));
  if (problem.graph.has_tensors_on_host())
    return Support::no("it does not plan for tensors at home on the host");
  return least_time_only(problem);
}

void drop_from(std::span<const std::vector<OpId>> orders, Context& context) {
  Problem own = context.problem();
  own.machine.reset();
  const Network network(own);
  Run run(network, context);
  for (const auto& order : orders) {
    // Both take tens of milliseconds where there are 100,000 ops.
    context.limits().spend(static_cast<std::int64_t>(own.graph.op_count() / 4));
    if (context.done()) break;
    run.run(order);
  }
}

std::unique_ptr<Solver> make_drop() { return std::make_unique<Drop>(); }

}  // namespace lowtide::solve::search

// The state is a sequence of events (plan/events.h), evaluated on the flat arrays of a Network
// (local/common). There a node is an op, and a value is a tensor that a plan can free. A `repeat`
// is a recomputation in the sequence.
//
// steer() changes the price of a byte over the budget so that the state keeps the budget in about a
// quarter of the samples, and so crosses it again and again. The best plans are found at the
// crossings.
#include "lowtide/solve/local/search/anneal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::local::search {

namespace {

// Debug builds re-simulate the first kCheckedMoves accepted moves, then every kCheckedMoves-th.
[[maybe_unused]] constexpr std::int64_t kCheckedMoves = 256;

// Proposals between two polls of the limits and of the budget.
constexpr int kPoll = 16;
constexpr int kSteer = 16;  // polls between two changes of the price; each poll samples the state
// At so many samples over the budget the price rises, and at so many within it the price falls.
constexpr int kRaiseAt = 14, kLowerAt = 6;
// Each recomputation has a break-even price of a byte, at which holding its tensors costs as much.
// The marginal price of a plan is estimated from at most kPricedRepeats of its recomputations,
// sampled evenly: the break-even price that a share kPricedShare of them exceed.
constexpr std::size_t kPricedRepeats = 64;
constexpr double kPricedShare = 0.25;

// The initial price of a byte over the budget. Relief is the number of bytes over the budget that
// an eviction removes, summed over the steps. Evict retention gaps in the order of cost per byte of
// relief, until the unplanned step keeps the budget; the price is the cost per byte of the last
// one. The cost of a gap is one computation of its op (or one copy), without that of freed inputs,
// so the price is far too low for a good plan.
double first_price(const Network& network, double typical_time) {
  const auto order = network.graph.order();
  std::vector<double> change(order.size() + 1, 0);  // of the live bytes, at each step
  const auto position = [&](Node node) {
    if (node == network.source()) return std::size_t{0};
    return node == network.sink() ? std::max<std::size_t>(order.size(), 1) - 1
                                  : network.graph.position(Network::op_of(node));
  };
  std::vector<std::size_t> uses;
  const auto uses_of = [&](Value value) {
    uses.assign(1, position(network.maker(value)));
    for (Node user : network.users(value)) uses.push_back(position(user));
    std::sort(uses.begin(), uses.end());
  };
  for (const Value value : network.bytes.ids()) {
    const std::size_t first = position(network.maker(value));
    std::size_t last = first;
    for (Node user : network.users(value)) last = std::max(last, position(user));
    change[first] += network.bytes_of(value);
    change[last + 1] -= network.bytes_of(value);
  }
  std::vector<double> steps_over(order.size() + 1, 0);  // steps over the budget before step i
  double bytes = 0, over = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    bytes += change[i];
    const double excess = bytes + network.workspace[Network::node_of(order[i])] - network.budget;
    over += std::max(0.0, excess);
    steps_over[i + 1] = steps_over[i] + (excess > 0 ? 1 : 0);
  }

  std::vector<std::pair<double, double>> gaps;  // ticks for each byte of relief, relief
  // For millions of readers a sample is sufficient.
  const std::size_t every = 1 + network.readers.size() / 400'000;
  for (std::size_t i = 0; i < network.value_count(); i += every) {
    const Value value(i);
    double cost = network.time_of(network.maker(value));
    if (network.transfers)
      cost = network.may_repeat(network.maker(value)) ? std::min(cost, network.copy_in[value])
                                                      : network.copy_in[value];
    else if (!network.may_repeat(network.maker(value)))
      continue;
    if (network.bytes_of(value) == 0) continue;
    uses_of(value);
    for (std::size_t k = 1; k < uses.size(); ++k) {
      if (uses[k] - uses[k - 1] < 2) continue;
      const double relief =
          network.bytes_of(value) * (steps_over[uses[k]] - steps_over[uses[k - 1] + 1]);
      if (relief > 0) gaps.emplace_back(cost / relief, static_cast<double>(every) * relief);
    }
  }
  std::sort(gaps.begin(), gaps.end());
  double price = typical_time / std::max(1.0, network.budget);
  for (const auto& [cost, relief] : gaps) {
    price = std::max(price, cost);
    over -= relief;
    if (over <= 0) break;
  }
  return price;
}

}  // namespace

Anneal::Anneal(const Network& network, Context& context, bool shift_first)
    : network_(network),
      context_(context),
      shift_first_(shift_first),
      near_(context.options().on("near") && !network.transfers),
      state_(network),
      moves_(network, state_, context.random()),
      best_duration_(std::numeric_limits<double>::infinity()) {
  unlimited_work_ = 1000 + 100 * static_cast<double>(network.graph.link_count());
  const Options& options = context.options();
  moves_.switches = {options.on("remove"),    options.on("exchange"), options.on("shift"),
                     options.on("push"),      options.on("chains"),   options.on("estimates"),
                     options.on("recompute"), options.on("swap"),     options.on("holds"),
                     options.on("queues"),    options.on("handover")};
  moves_.shift_first = shift_first;
  moves_.price = first_price(network, moves_.typical_time);
  least_price_ = 1e-3 * moves_.price;
  most_price_ = 1e4 * moves_.price;
}

void Anneal::load(std::span<const Event> sequence, bool offered) {
  state_.load(sequence);
  if (near_) price_by_repeats();
  if (!state_.within() || host_is_full() || state_.duration() >= best_duration_) return;
  best_duration_ = state_.duration();
  best_.assign(sequence.begin(), sequence.end());
  offered_ = offered;
}

// Sets the price to the marginal price of the start plan. At the price of first_price, annealing
// would first undo nearly all recomputations of the start plan, and then rebuild them.
void Anneal::price_by_repeats() {
  if (!state_.within()) return;
  std::vector<double> prices;
  const std::size_t count = state_.repeat_count();
  const std::size_t every = 1 + count / kPricedRepeats;
  for (std::size_t i = 0; i < count; i += every)
    if (const double price = moves_.even_price(state_.repeat(i)); price > 0)
      prices.push_back(price);
  if (prices.empty()) return;
  near_ = false;
  const auto quantile =
      static_cast<std::ptrdiff_t>((1 - kPricedShare) * static_cast<double>(prices.size() - 1));
  std::nth_element(prices.begin(), prices.begin() + quantile, prices.end());
  moves_.price = std::clamp(prices[static_cast<std::size_t>(quantile)], moves_.price, most_price_);
}

double Anneal::used() const {
  const Limits& limits = context_.limits();
  if (limits.settings().work || limits.settings().seconds) return limits.used();
  return std::min(1.0, static_cast<double>(limits.work()) / unlimited_work_);
}

bool Anneal::poll() {
  const std::int64_t work = state_.work();
  context_.limits().spend(1 + (work - std::exchange(work_seen_, work)) / 16);
  return context_.done();
}

void Anneal::save() {
  unsaved_ = false;
  best_ = state_.sequence();
  context_.limits().spend(static_cast<std::int64_t>(best_.size() / 64));
  // Offering a plan simulates it, which takes as long as thousands of moves. So offer at once only
  // a plan that reaches the bound; otherwise wait until the moves have taken as long as one offer.
  const std::int64_t work = context_.limits().work();
  offered_ = false;
  const auto bound = static_cast<double>(context_.bound().duration.count());
  if (best_duration_ <= bound || work - offered_at_ >= 8 * static_cast<std::int64_t>(best_.size()))
    offer_best();
}

void Anneal::offer_best() {
  if (offered_ || best_.empty()) return;
  context_.offer_events(best_);
  offered_at_ = context_.limits().work();
  offered_ = true;
}

// Proposes to move a first computation: any one or, while the state is over the budget, in half of
// the draws one near a step over the budget.
void Anneal::propose_first() {
  Random& random = moves_.random;
  const std::size_t slots = state_.slot_count();
  Item item = state_.item_from(Slot(random.below(slots - 1)));
  if (state_.profile().over() > 0 && random.chance(0.5)) {
    const Slot over = moves_.any_overload();
    const Slot slot = over + static_cast<Distance>(random.below(40)) - 20;
    const Item nearby = state_.item_at(std::clamp(slot, Slot(0), Slot(slots - 1)));
    if (nearby.valid()) item = nearby;
  }
  if (!item.valid()) return;
  if (random.below(100) < 70)
    moves_.push(item);
  else
    moves_.shift(item);
}

// Over the budget most draws relieve a step; within it most shorten the plan. The shares of the
// moves are in per cent of the draws.
void Anneal::propose_with_transfers() {
  const auto draw = moves_.random.below(100);
  const bool hands_over = moves_.switches.may_hand_over() && state_.fetch_time() > 0;
  const auto shift = [&] {
    const Item item = moves_.any_later();
    if (item == kNone) return;
    if (!network_.is_op(state_.node(item)))
      moves_.shift_transfer(item);
    else if (moves_.random.below(100) < 35)
      moves_.push(item);
    else
      moves_.shift(item);
  };
  if (state_.profile().over() > 0) {
    if (draw < 60) {
      if (const Slot slot = moves_.any_overload(); slot.valid()) moves_.relieve(slot);
    } else if (draw < 66) {
      shift();
    } else if (draw < 80) {
      moves_.remove_repeat();
    } else if (hands_over && draw < 85) {
      moves_.hand_over();
    } else {
      moves_.exchange(false);
    }
  } else {
    if (draw < 34)
      moves_.remove_repeat();
    else if (draw < 44)
      shift();
    else if (hands_over && draw < 60)
      moves_.hand_over();
    else
      moves_.exchange(true);
  }
}

void Anneal::propose() {
  Random& random = moves_.random;
  const auto draw = random.below(100);
  if (order_only_ || (shift_first_ && random.below(100) < 55)) return propose_first();
  if (network_.transfers) return propose_with_transfers();
  const auto shift_repeat = [&] {
    const Item item = moves_.any_repeat();
    if (item == kNone) return;
    if (random.below(100) < 35)
      moves_.push(item);
    else
      moves_.shift(item);
  };
  if (state_.profile().over() > 0) {
    if (draw < 55) {
      if (const Slot slot = moves_.any_overload(); slot.valid()) moves_.drop_gap(slot);
    } else if (draw < 70) {
      shift_repeat();
    } else if (draw < 82) {
      moves_.remove_repeat();
    } else {
      moves_.exchange(false);
    }
  } else {
    if (draw < 35)
      moves_.remove_repeat();
    else if (draw < 60)
      shift_repeat();
    else
      moves_.exchange(true);
  }
}

void Anneal::step() {
  const double before = energy(state_.duration());
  propose();
  if (!state_.changed()) return;
  if (network_.transfers)
    price_or_undo(before);
  else
    accept_or_undo(before);
}

void Anneal::accept_or_undo(double before) {
  const double rise = energy(state_.duration()) - before;
  if (rise > 0 && moves_.random.uniform() >= std::exp(-rise / moves_.temperature)) {
    state_.undo();
    return;
  }
  keep_or_undo();
}

// Draws the acceptance threshold first. The sum of the computations is a lower bound on the
// duration, so a move whose bound exceeds the threshold is rejected without simulating the lanes.
void Anneal::price_or_undo(double before) {
  const double most = before - moves_.temperature * std::log(moves_.random.uniform() + 1e-300);
  if (energy(state_.compute_time()) > most || host_is_full()) {
    state_.undo();
    return;
  }
  state_.settle();
  if (energy(state_.duration()) > most)
    state_.undo();
  else
    keep_or_undo();
}

void Anneal::keep_or_undo() {
  const bool better = state_.duration() < best_duration_ && state_.within();
  if (unsaved_ && !better) {
    // The best state is not saved yet: return to it and save it before accepting a worse one.
    state_.undo();
    save();
    return;
  }
  state_.commit();
#if LOWTIDE_DEBUG_CHECKS
  if (accepted_++ < kCheckedMoves || accepted_ % kCheckedMoves == 0) state_.check_price();
#endif
  if (!better) return;
  best_duration_ = state_.duration();
  unsaved_ = true;
}

void Anneal::steer() {
  // Consecutive changes in one direction grow: streak_ counts them, with the sign of the direction.
  const int direction = outside_ >= kRaiseAt ? 1 : within_ >= kLowerAt ? -1 : 0;
  streak_ = direction != 0 && direction * streak_ >= 0 ? streak_ + direction : direction;
  if (direction > 0) moves_.price *= std::min(1.6, 1 + 0.05 * streak_);
  if (direction < 0) moves_.price *= std::max(0.7, 1 + 0.03 * streak_);
  moves_.price = std::clamp(moves_.price, least_price_, most_price_);
  within_ = outside_ = 0;
}

void Anneal::round(double until, double hot, double cold) {
  // The options allow a temperature of zero, but the cooling below divides and multiplies by both.
  hot = std::max(hot, 1e-9);
  cold = std::max(cold, 1e-9);
  const double from = used();
  const double span = std::max(1e-12, until - from);
  int polls = 0;
  for (double now = from; now < until && !poll(); now = used()) {
    moves_.temperature =
        moves_.typical_time * hot * std::pow(cold / hot, std::min(1.0, (now - from) / span));
    ++(state_.profile().over() > 0 ? outside_ : within_);
    if (++polls % kSteer == 0) steer();
    for (int i = 0; i < kPoll; ++i) step();
  }
  if (unsaved_) save();
#if LOWTIDE_DEBUG_CHECKS
  state_.check_invariants();
#endif
}

// The first computation of each op. Of a tensor whose home is the host, also the first fetch, since
// readers of the tensor need it.
std::vector<Event> Anneal::without_repeats() const {
  const Graph& graph = network_.graph;
  std::vector<std::uint8_t> computed(graph.op_count(), 0), fetched(graph.tensor_count(), 0);
  std::vector<Event> firsts;
  for (const Event& event : state_.sequence()) {
    const bool first = event.is_compute()
                           ? std::exchange(computed[event.op().index()], 1) == 0
                           : event.kind == Event::Kind::fetch && graph.on_host(event.tensor()) &&
                                 std::exchange(fetched[event.tensor().index()], 1) == 0;
    if (first) firsts.push_back(event);
  }
  return firsts;
}

void Anneal::reorder(double until) {
  // Without recomputations the duration is constant, so the energy is essentially the number of
  // bytes over the budget.
  load(without_repeats(), false);
  double bytes = 0;
  for (double size : network_.bytes) bytes += size;
  const double price = std::exchange(moves_.price, 1);
  const double from = used(), span = std::max(1e-12, until - from);
  order_only_ = true;
  for (double now = from; now < until && !state_.within() && !poll(); now = used()) {
    moves_.temperature = 0.02 * bytes * std::pow(1e-5, std::min(1.0, (now - from) / span));
    for (int i = 0; i < kPoll; ++i) step();
  }
  order_only_ = false;
  moves_.price = price;
  if (unsaved_) save();
}

void Anneal::repair(double until) {
  const double price = moves_.price;
  moves_.temperature = 1e-3 * moves_.typical_time;
  for (int polls = 1; !state_.within() && used() < until && !poll(); ++polls) {
    for (int i = 0; i < kPoll && state_.profile().over() > 0; ++i) step();
    if (polls % 12 == 0) moves_.price *= 1.1;
  }
  if (unsaved_) save();
  moves_.price = price;
}

}  // namespace lowtide::solve::local::search

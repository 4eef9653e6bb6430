// The price of a byte oscillates so that the state keeps the budget for about a fifth of the time:
// plans are found where the two meet.
#include "lowtide/solve/search/anneal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lowtide::search {

namespace {

// How many proposals between two looks at the limits, and at whether the budget is kept.
constexpr int kPoll = 16;
constexpr int kSteer = 16;  // looks

// A price at which the bytes that a typical gap frees are worth a few typical op times.
double first_price(const Network& network, double typical_time) {
  double bytes = 0, gap = 0;
  std::size_t gaps = 0;
  const auto position = [&](Node node) {
    return node < network.ops ? static_cast<double>(network.graph.position(OpId(
                                    static_cast<std::size_t>(node))))
                              : static_cast<double>(network.ops);
  };
  for (Value value = 0; value < network.values; ++value) {
    bytes += network.bytes_of(value);
    double from = network.maker(value) < network.ops ? position(network.maker(value)) : 0, to = from;
    for (Node user : network.users(value)) to = std::max(to, position(user));
    if (to - from < 2) continue;
    gap += (to - from) / static_cast<double>(network.users(value).size());
    ++gaps;
  }
  const double mean_bytes = std::max(1.0, bytes / std::max(1, network.values));
  const double mean_gap = std::max(1.0, gap / static_cast<double>(std::max<std::size_t>(1, gaps)));
  return 5 * typical_time / (mean_bytes * mean_gap);
}

}  // namespace

Anneal::Anneal(const Network& network, Context& context, bool shift_first)
    : network_(network),
      context_(context),
      shift_first_(shift_first),
      state_(network),
      moves_(network, state_, context.random()),
      best_duration_(std::numeric_limits<double>::infinity()) {
  moves_.price = first_price(network, moves_.typical_time);
  least_price_ = 1e-2 * moves_.price;
  most_price_ = 1e4 * moves_.price;
}

void Anneal::load(std::span<const OpId> sequence) {
  state_.load(sequence);
  if (!state_.within() || state_.duration() >= best_duration_) return;
  best_duration_ = state_.duration();
  best_.assign(sequence.begin(), sequence.end());
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
  // Pricing a plan takes as long as hundreds of moves.
  const std::int64_t work = context_.limits().work();
  if (work - offered_at_ < static_cast<std::int64_t>(best_.size())) return;
  context_.offer_sequence(best_);
  offered_at_ = work;
}

void Anneal::propose() {
  Random& random = moves_.random;
  const auto draw = random.below(100);
  if (shift_first_ && random.below(100) < 55) {
    const auto slots = static_cast<std::size_t>(state_.slot_count());
    Item item = state_.item_from(static_cast<Slot>(random.below(slots - 1)));
    if (state_.profile().over() > 0 && random.chance(0.5)) {
      const Slot near = moves_.any_overload() + static_cast<Slot>(random.below(40)) - 20;
      const Item there = state_.item_at(std::clamp<Slot>(near, 0, state_.slot_count() - 1));
      if (there >= 0) item = there;
    }
    if (item >= 0) moves_.shift(item);
    return;
  }
  const auto shift_repeat = [&] {
    if (const Item item = moves_.any_repeat(); item != kNone) moves_.shift(item);
  };
  if (state_.profile().over() > 0) {
    if (draw < 55) {
      if (const Slot slot = moves_.any_overload(); slot >= 0) moves_.drop_gap(slot);
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
  const double before = energy();
  propose();
  if (state_.changed()) settle(before);
}

void Anneal::settle(double before) {
  const double rise = energy() - before;
  if (rise > 0 && moves_.random.uniform() >= std::exp(-rise / moves_.temperature)) {
    state_.undo();
    return;
  }
  const bool better = state_.duration() < best_duration_ && state_.within();
  if (unsaved_ && !better) {
    // Before the best is left it must be written down.
    state_.undo();
    save();
    return;
  }
  state_.commit();
  if (!better) return;
  best_duration_ = state_.duration();
  unsaved_ = true;
}

void Anneal::steer() {
  if (outside_ >= 14)
    moves_.price *= 1.05;
  else if (within_ >= 6)
    moves_.price *= 0.97;
  moves_.price = std::clamp(moves_.price, least_price_, most_price_);
  within_ = outside_ = 0;
}

void Anneal::round(double until, double hot, double cold) {
  Limits& limits = context_.limits();
  const double from = limits.used();
  const double span = std::max(1e-12, until - from);
  int looks = 0;
  for (double used = from; used < until && !poll(); used = limits.used()) {
    moves_.temperature =
        moves_.typical_time * hot * std::pow(cold / hot, std::min(1.0, (used - from) / span));
    ++(state_.profile().over() > 0 ? outside_ : within_);
    if (++looks % kSteer == 0) steer();
    for (int i = 0; i < kPoll; ++i) step();
  }
  if (unsaved_) save();
#if LOWTIDE_DEBUG_CHECKS
  state_.check_invariants();
#endif
}

void Anneal::repair(double until) {
  const double price = moves_.price;
  moves_.temperature = 1e-3 * moves_.typical_time;
  for (int looks = 1; !state_.within() && context_.limits().used() < until && !poll(); ++looks) {
    for (int i = 0; i < kPoll && state_.profile().over() > 0; ++i) step();
    if (looks % 12 == 0) moves_.price *= 1.1;
  }
  if (unsaved_) save();
  moves_.price = price;
}

}  // namespace lowtide::search

// Problem: find a lower bound on the extra time of every plan. At a cut point one op runs. Of the
// tensors that later ops need, a plan keeps those that fit beside this op; it recomputes the others
// after the cut point, or fetches them from the host. How long does that take at least?
//
// Idea: replace the limit on kept bytes by a price per byte (Lagrangian relaxation). The problem is
// then a minimum cut (cut_network.h). For every price, the value of the cut minus price x room is a
// lower bound on the time, where the room is the number of bytes that the budget leaves. The bound
// is a concave, piecewise linear function of the price (the multiplier), and each cut gives one of
// its lines. The best multiplier is bracketed between one whose cut keeps too many bytes and one
// whose cut keeps the budget. The next candidate is where the lines of these two cuts cross.
//
// With a machine a needed tensor has two prices: that of its bytes, and that of its copies at the
// current shares of the links (cut_link.cpp). The cut pays the lower one; only kept tensors take
// room.
//
// Source: Lagrangian relaxation of the knapsack row of a closure problem; J.-C. Picard, Maximal
// closure of a graph, Management Science 1976.
//
// Invariant: prices are rounded down and the price of the room is rounded up, all in integers. So
// every value is a valid bound, for any multiplier and any flow that it continues.
//
// Loses: if a few large tensors decide. The relaxation keeps fractions of tensors; branching
// (cut_branch.h) closes that gap. The bound ignores the memory that the recomputation itself needs.
#include "lowtide/solve/bounds/cut/cut_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace lowtide::solve::bounds {

namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kLargestMultiplier = std::int64_t{1} << 61;
constexpr int kMostPoints = 40;  // multipliers tried after the first bracket

std::int64_t clamped(Wide value) {
  constexpr Wide kLimit = Wide{1} << 62;
  return static_cast<std::int64_t>(std::clamp(value, -kLimit, kLimit));
}

std::int64_t multiplier_of(double value) {
  if (!(value > 0)) return 0;
  return value < static_cast<double>(kLargestMultiplier) ? static_cast<std::int64_t>(value)
                                                         : kLargestMultiplier;
}

int bit_count(std::int64_t value) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
}

}  // namespace

CutScale::CutScale(const Graph& graph, std::int64_t prices) {
  most = (std::int64_t{1} << 61) / (static_cast<std::int64_t>(graph.tensor_count()) + 1) / prices;
  // The whole graph's time stays below an eighth of the largest price.
  time_shift = std::clamp(bit_count(most) - 4 - bit_count(graph.total_time().count()), -62, 40);
  total = scaled(graph.total_time());
  longest = time_shift >= 0 ? most >> time_shift : Ticks::max().count();
  Bytes bytes;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) bytes += graph.bytes(TensorId(i));
  price_shift = std::min(bit_count(bytes.count()), 62);
}

Ticks CutScale::ticks(std::int64_t value) const {
  if (value <= 0) return Ticks(0);
  if (time_shift < 0) return Ticks(clamped(Wide{value} << -time_shift));
  return Ticks((value >> time_shift) +
               static_cast<std::int64_t>((value & ((std::int64_t{1} << time_shift) - 1)) != 0));
}

CutSearch::CutSearch(const Problem& problem, CutNetwork network, const CutScale& scale,
                     Limits& limits)
    : problem_(problem),
      network_(std::move(network)),
      scale_(scale),
      limits_(limits),
      holds_(network_.choices().size(), Hold::open),
      again_(network_.ops().size()),
      host_(network_.choices().size()),
      grown_(network_.choices().size()) {
  const auto choices = network_.choices();
  outright_ = std::any_of(choices.begin(), choices.end(),
                          [](const CutNetwork::Choice& choice) { return choice.outright(); });
  set_shares({});
}

void CutSearch::set_shares(const LinkShares& shares) {
  shares_ = shares;
  const auto share = [](std::int64_t scaled, std::int64_t of) {
    return Wide{scaled} * of >> LinkShares::kBits;
  };
  // While an op runs, the links can copy. So link_time_ credits each op with its time x a share:
  // that of the link to the host before the cut point, that of the link back after it. An
  // op that may be on either side gets the larger credit. An op before the cut point that runs
  // again after it costs its time, minus the second credit. An op on either side costs the
  // difference of the credits if its first computation is after the cut point, since it got the
  // larger one.
  const std::int64_t lost_credit = std::max<std::int64_t>(0, shares.out - shares.in);
  all_again_ = 0;
  for (std::size_t i = 0; i < again_.size(); ++i) {
    const bool before = network_.side(i) == Side::before;
    again_[i] =
        static_cast<std::int64_t>(share(scale_.scaled(problem_.graph.time(network_.ops()[i])),
                                        before ? LinkShares::kAll - shares.in : lost_credit));
    all_again_ += again_[i];
  }
  const auto choices = network_.choices();
  for (std::size_t i = 0; i < host_.size(); ++i) {
    host_[i] = scale_.most;
    if (!network_.hosts()) continue;
    const Wide price = share(scale_.transfer(choices[i].out), shares.out) +
                       share(scale_.transfer(choices[i].in), shares.in);
    host_[i] = static_cast<std::int64_t>(std::min<Wide>(price, scale_.most));
    all_again_ += host_[i];
  }
  const Wide taken =
      Wide{scale_.scaled_up(network_.time(Side::before))} * shares.out +
      Wide{scale_.scaled_up(network_.time(Side::after))} * shares.in +
      Wide{scale_.scaled_up(network_.time(Side::either))} * std::max(shares.out, shares.in);
  link_time_ = clamped((taken + LinkShares::kAll - 1) >> LinkShares::kBits);
}

void CutSearch::decide(std::span<const std::pair<std::int32_t, Hold>> holds) {
  std::fill(holds_.begin(), holds_.end(), Hold::open);
  room_ = problem_.budget.count() - network_.fixed().count();
  for (const auto& [choice, hold] : holds) {
    const auto i = static_cast<std::size_t>(choice);
    holds_[i] = hold;
    if (hold == Hold::kept) room_ -= network_.choices()[i].bytes;
  }
}

std::int64_t CutSearch::price(std::size_t choice, std::int64_t multiplier) const {
  switch (holds_[choice]) {
    case Hold::kept: return 0;
    case Hold::dropped: return host_[choice];
    case Hold::open: break;
  }
  const Wide price = Wide{multiplier} * network_.choices()[choice].bytes >> scale_.price_shift;
  return price < host_[choice] ? static_cast<std::int64_t>(price) : host_[choice];
}

bool CutSearch::is_kept(std::size_t choice, std::int64_t multiplier) const {
  if (holds_[choice] != Hold::open) return holds_[choice] == Hold::kept;
  return Wide{multiplier} * network_.choices()[choice].bytes >> scale_.price_shift <= host_[choice];
}

void CutSearch::start_afresh() {
  network_.clear();
  for (std::size_t i = 0; i < network_.ops().size(); ++i)
    network_.flow().grow_drain(static_cast<std::int32_t>(i), again_[i]);
  for (std::size_t i = 0; i < holds_.size(); ++i) {
    grown_[i] = holds_[i] == Hold::dropped ? host_[i] : 0;
    if (grown_[i] > 0) network_.grow_price(network_.choices()[i], grown_[i]);
  }
}

void CutSearch::save() {
  network_.flow().save(saved_);
  saved_grown_ = grown_;
}

void CutSearch::restore() {
  network_.flow().restore(saved_);
  grown_ = saved_grown_;
}

// Raises the prices of the last multiplier, which must not be larger, and continues its flow to a
// minimum cut. Returns false if the search was stopped.
bool CutSearch::evaluate(std::int64_t multiplier, Point& point) {
  const auto choices = network_.choices();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::int64_t now = price(i, multiplier);
    if (now <= grown_[i]) continue;
    network_.grow_price(choices[i], now - grown_[i]);
    grown_[i] = now;
  }
  limits_.spend(static_cast<std::int64_t>(choices.size()) / 64);
  if (!network_.flow().run(limits_)) return false;
  point.multiplier = multiplier;
  point.bytes = 0;
  point.kept.assign(choices.size(), 0);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (holds_[i] != Hold::open || !network_.pays(choices[i])) continue;
    if (network_.hosts() && !is_kept(i, multiplier)) continue;
    point.kept[i] = 1;
    point.bytes += choices[i].bytes;
  }
  if (network_.hosts()) find_slopes(point);
  const std::int64_t paid = network_.flow().value() + paid_outright(multiplier);
  const Wide room = Wide{multiplier} * room_;
  const Wide rounded = (room + (Wide{1} << scale_.price_shift) - 1) >> scale_.price_shift;
  point.value = clamped(Wide{paid} - rounded - link_time_);
  if (point.bytes <= room_ && paid < scale_.most * 2) remember_if_best(multiplier);
  return true;
}

std::int64_t CutSearch::paid_outright(std::int64_t multiplier) const {
  std::int64_t sum = 0;
  if (!outright_) return sum;
  const auto choices = network_.choices();
  for (std::size_t i = 0; i < choices.size(); ++i)
    if (choices[i].outright()) sum += price(i, multiplier);
  return sum;
}

void CutSearch::find_slopes(Point& point) const {
  const auto choices = network_.choices();
  double out = 0, in = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (!network_.pays(choices[i]) || is_kept(i, point.multiplier)) continue;
    out += static_cast<double>(scale_.transfer(choices[i].out));
    in += static_cast<double>(scale_.transfer(choices[i].in));
  }
  point.moved =
      std::ldexp(out * static_cast<double>(shares_.out) + in * static_cast<double>(shares_.in),
                 -LinkShares::kBits);
  const auto scaled = [&](Ticks time) { return static_cast<double>(scale_.scaled(time)); };
  const bool rather_out = shares_.out >= shares_.in;
  for (std::size_t i = 0; i < network_.ops().size(); ++i) {
    if (!network_.runs_again(i)) continue;
    const double time = scaled(problem_.graph.time(network_.ops()[i]));
    if (network_.side(i) == Side::before) {
      in -= time;
    } else if (rather_out) {
      out += time;
      in -= time;
    }
  }
  const double either = scaled(network_.time(Side::either));
  point.out_slope = out - scaled(network_.time(Side::before)) - (rather_out ? either : 0);
  point.in_slope = in - scaled(network_.time(Side::after)) - (rather_out ? 0 : either);
}

// Saves the last cut if it keeps the budget and has the least extra time so far. The extra time is
// that of the recomputations and of the transfers that the links cannot overlap with the ops.
void CutSearch::remember_if_best(std::int64_t multiplier) {
  Kept found;
  for (std::size_t i = 0; i < network_.ops().size(); ++i)
    if (network_.runs_again(i) && network_.side(i) == Side::before)
      found.extra += problem_.graph.time(network_.ops()[i]);
  if (best_ && best_->extra <= found.extra) return;
  const auto choices = network_.choices();
  std::int64_t bytes = network_.fixed().count();
  Wide out = 0, in = 0;
  bool hosts = false;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool pays = network_.pays(choices[i]);
    if (!network_.hosts() && pays && holds_[i] == Hold::dropped) return;
    if (holds_[i] == Hold::kept || (pays && (!network_.hosts() || is_kept(i, multiplier)))) {
      bytes += choices[i].bytes;
      continue;
    }
    found.dropped.push_back(choices[i].tensor);
    if (!pays) continue;
    hosts = true;
    out += choices[i].out.count();
    in += choices[i].in.count();
  }
  if (hosts) {
    const Ticks either = network_.time(Side::either);
    const Wide late_out = out - (network_.time(Side::before) + either).count();
    const Wide late_in = in - (network_.time(Side::after) + either).count();
    found.extra =
        Ticks(clamped(std::max<Wide>(late_out, 0) + std::max<Wide>(late_in, found.extra.count())));
    if (best_ && best_->extra <= found.extra) return;
  }
  if (bytes > problem_.budget.count()) return;
  for (std::size_t i = 0; i < network_.ops().size(); ++i)
    if (network_.runs_again(i)) found.again.push_back(network_.ops()[i]);
  best_ = std::move(found);
}

// The multiplier at which the rising line of `left` meets the falling line of `right`.
std::int64_t CutSearch::crossing(const Point& left, const Point& right) const {
  const double unit = std::ldexp(1.0, -scale_.price_shift);
  const double up = static_cast<double>(left.bytes - room_) * unit;
  const double down = static_cast<double>(room_ - right.bytes) * unit;
  const double span = static_cast<double>(right.multiplier - left.multiplier);
  const double rise = static_cast<double>(right.value) - static_cast<double>(left.value);
  return left.multiplier + multiplier_of((rise + down * span) / (up + down));
}

// An upper bound on the Lagrangian value at all multipliers between `left` and `right`.
std::int64_t CutSearch::limit_of(const Point& left, const Point& right) const {
  const std::int64_t at = std::clamp(crossing(left, right), left.multiplier, right.multiplier);
  return clamped(Wide{left.value} +
                 (Wide{at + 1 - left.multiplier} * (left.bytes - room_) >> scale_.price_shift) + 2);
}

// Records the plane of this cut over multiplier and shares.
void CutSearch::tell(const Point& point, CutFound& found) {
  const auto value = static_cast<double>(point.value);
  found.value = std::max(found.value, value);
  found.limit = value;
  found.out_slope = point.out_slope;
  found.in_slope = point.in_slope;
  found.moved = point.moved;
}

// The convex combination of both cuts' planes that is constant in the multiplier.
void CutSearch::mix(const Point& left, const Point& right, CutFound& found) const {
  const double more = static_cast<double>(left.bytes - room_);
  const double less = static_cast<double>(room_ - right.bytes);
  const double part = less / (more + less);
  const auto both = [&](double a, double b) { return part * a + (1 - part) * b; };
  found.limit = static_cast<double>(limit_of(left, right));
  found.out_slope = both(left.out_slope, right.out_slope);
  found.in_slope = both(left.in_slope, right.in_slope);
  found.moved = both(left.moved, right.moved);
}

std::int32_t CutSearch::differing(const CutNetwork& network, const Point& left,
                                  const Point& right) {
  std::int32_t branch = -1;
  std::int64_t most = -1;
  for (std::size_t i = 0; i < left.kept.size(); ++i)
    if (left.kept[i] != right.kept[i] && network.choices()[i].bytes > most) {
      most = network.choices()[i].bytes;
      branch = static_cast<std::int32_t>(i);
    }
  return branch;
}

CutFound CutSearch::maximise(std::span<const std::pair<std::int32_t, Hold>> holds,
                             const CutAim& aim) {
  decide(holds);
  CutFound found;
  found.multiplier = aim.multiplier;
  found.value = -std::numeric_limits<double>::infinity();
  if (room_ < 0) {
    found.infeasible = true;
    return found;
  }
  start_afresh();
  Point left, right, here;
  const auto stopped = [&] {
    found.stopped = true;
    return found;
  };
  std::int64_t best = 0;
  const auto record = [&](const Point& point) {
    if (point.value > best || point.multiplier == 0) found.multiplier = point.multiplier;
    best = std::max(best, point.value);
    found.extra = scale_.ticks(best);
    if (network_.hosts()) tell(point, found);
    // Even to run every op again and transfer every tensor takes less time than the bound. So no
    // cut keeps the budget.
    found.infeasible = best > all_again_;
  };
  if (!evaluate(0, left)) return stopped();
  record(left);
  if (left.bytes <= room_ || found.infeasible || found.extra >= aim.enough) return found;
  save();

  // Increase the multiplier until the cut keeps the budget.
  std::int64_t next = aim.multiplier;  // without a hint: a twentieth of a crude estimate
  if (next == 0)
    next = multiplier_of(
        std::ldexp(static_cast<double>(all_again_) / static_cast<double>(left.bytes - room_),
                   scale_.price_shift) *
        0.05);
  next = std::max<std::int64_t>(next, 1);
  for (int tries = 0;; ++tries) {
    if (!evaluate(next, here)) return stopped();
    record(here);
    if (found.infeasible || found.extra >= aim.enough) return found;
    if (here.bytes <= room_) {
      std::swap(right, here);
      break;
    }
    std::swap(left, here);
    if (next >= kLargestMultiplier) return found;
    save();
    next = next > kLargestMultiplier / 4 ? kLargestMultiplier
           : tries < 2                   ? next + next / 2 + 1
                                         : next * 4;
  }
  // Stop when the bound can rise by less than a quarter of a tick, or by less than 1e-7 of itself.
  const std::int64_t quarter_tick = std::int64_t{1} << std::max(0, scale_.time_shift - 2);
  const std::int64_t close = std::max(best / 10'000'000, quarter_tick);
  for (int points = 0; points < kMostPoints && right.bytes < room_; ++points) {
    const std::int64_t limit = limit_of(left, right);
    if (limit - best <= close || scale_.ticks(limit) <= aim.worth) break;
    next = crossing(left, right);
    if (next <= left.multiplier || next >= right.multiplier) break;
    restore();
    if (!evaluate(next, here)) return stopped();
    record(here);
    if (found.infeasible || found.extra >= aim.enough) return found;
    if (here.bytes > room_) {
      std::swap(left, here);
      save();
    } else {
      std::swap(right, here);
    }
  }
  found.branch = differing(network_, left, right);
  if (network_.hosts()) mix(left, right, found);
  return found;
}

std::optional<Bytes> CutSearch::least_bytes() {
  std::fill(holds_.begin(), holds_.end(), Hold::open);
  network_.clear();
  const auto choices = network_.choices();
  Bytes all;
  for (const CutNetwork::Choice& choice : choices) all += Bytes(choice.bytes);
  const int shift = std::max(0, bit_count(all.count()) - 60);
  for (const CutNetwork::Choice& choice : choices)
    network_.grow_price(choice, choice.bytes >> shift);
  if (!network_.flow().run(limits_)) return std::nullopt;
  return network_.fixed() + Bytes(network_.flow().value() << shift);
}

}  // namespace lowtide::solve::bounds

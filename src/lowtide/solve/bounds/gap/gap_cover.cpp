// Problem: many steps exceed the budget at once. Which tensors must be evicted, at what cost?
//
// Idea: a tensor that is not live at some step between two of its uses must be recomputed between
// these uses, and the retention gaps of one tensor are disjoint. So each evicted gap costs a
// separate run of the op, and at each step the evicted gaps must cover the excess: a covering
// program. Relaxing its rows with prices on the bytes of each step leaves a sum over gaps.
//   Ops with several outputs: one run restores all of them, but hits at most one gap of each
// output. So a gap pays a share of the time, and the shares of an op's outputs sum to at most the
// whole.
//   Dead producers: an op v = f(u), whose input u no other op can read again, needs u. So while v
// is evicted, u is live, or evicted and recomputed as well. If u is at least as large as all
// outputs of f, holding u instead of v gains nothing at that step, so a gap of v that is worth
// evicting costs both runs. This holds along chains. The producer of u must have no other output
// with a reader, or its run would be charged twice.
//
// Source: the gaps are Moccasin's retention intervals (Bartan et al., ICML 2023); subgradients
// with Polyak's step.
//
// Invariant: prices are proposed in floating point. `certified` evaluates the best of them in
// integers, rounded so that the result is at most the Lagrangian.
//
// Loses: to the bound of one cut point, if chains of ops must be recomputed and the conditions
// above do not hold. It covers many steps at once, which a cut does not.
#include "lowtide/solve/bounds/gap/gap_cover.h"

#include <algorithm>
#include <cmath>

#include "lowtide/solve/bounds/common/index.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::bounds {

namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kGapsPerUnit = 256;  // of work
constexpr std::int64_t kMostSteps = 20000;
constexpr int kPatience = 40;  // steps without gain before the stride shrinks

}  // namespace

GapCover::GapCover(const Problem& problem, std::span<const Bytes> profile) {
  std::vector<std::int32_t> steps_before(profile.size() + 1, 0);
  for (std::size_t at = 0; at < profile.size(); ++at) {
    steps_before[at] = static_cast<std::int32_t>(excess_.size());
    if (profile[at] > problem.budget) excess_.push_back((profile[at] - problem.budget).count());
  }
  steps_before.back() = static_cast<std::int32_t>(excess_.size());
  collect_gaps(problem.graph, steps_before);
  prices_.assign(excess_.size(), 0.0);
  direction_ = best_prices_ = prices_;
  finished_ = excess_.empty();
}

// For each op the time of restoring its outputs, dead producers included; -1: they cannot be
// restored after their last use.
std::vector<std::int64_t> GapCover::times_of_drops(const Graph& graph) const {
  std::vector<std::int64_t> times(graph.op_count(), -1);
  for (const OpId op : graph.order()) {
    if (!graph.recomputable(op)) continue;
    std::int64_t& time = times[op.index()];
    time = graph.time(op).count();
    Bytes made;
    for (TensorId id : graph.outputs(op)) made += graph.bytes(id);
    for (TensorId input : graph.inputs(op)) {
      if (!graph.freeable(input) || graph.is_output(input) || graph.bytes(input) < made) continue;
      const auto readers = graph.consumers(input);
      if (std::any_of(readers.begin(), readers.end(), [&](OpId reader) {
            return reader != op &&
                   (graph.recomputable(reader) || graph.position(reader) > graph.position(op));
          }))
        continue;
      const OpId producer = graph.producer(input);
      if (producer.valid()) {
        const auto siblings = graph.outputs(producer);
        if (std::any_of(siblings.begin(), siblings.end(), [&](TensorId sibling) {
              return sibling != input &&
                     (graph.is_output(sibling) || !graph.consumers(sibling).empty());
            }))
          continue;
      }
      const std::int64_t more = producer.valid() ? times[producer.index()] : -1;
      if (more < 0) {
        time = -1;
        break;
      }
      time += more;
    }
  }
  return times;
}

void GapCover::collect_gaps(const Graph& graph, std::span<const std::int32_t> steps_before) {
  const std::vector<std::int64_t> times = times_of_drops(graph);
  const std::vector<std::size_t> deadlines = rerun_deadlines(graph, graph.order());
  const std::size_t end = graph.op_count();
  std::vector<std::size_t> uses;
  for (const OpId op : graph.order()) {
    if (times[op.index()] < 0) continue;
    const std::size_t first_gap = gaps_.size();
    std::vector<Bytes> biggest;  // by output with gaps
    std::vector<std::size_t> owner;
    for (TensorId id : graph.outputs(op)) {
      if (graph.bytes(id) == Bytes(0)) continue;
      uses.assign(1, graph.position(op));
      for (OpId reader : graph.consumers(id)) uses.push_back(graph.position(reader));
      if (graph.is_output(id)) uses.push_back(end);
      std::sort(uses.begin(), uses.end());
      const std::size_t before = gaps_.size();
      for (std::size_t i = 1; i < uses.size(); ++i) {
        const std::size_t past = std::min(uses[i], deadlines[op.index()]);
        if (past <= uses[i - 1] + 1) continue;
        const std::int32_t from = steps_before[uses[i - 1] + 1], to = steps_before[past];
        if (from < to) gaps_.push_back({from, to, graph.bytes(id).count(), times[op.index()], 0});
      }
      if (gaps_.size() == before) continue;
      biggest.push_back(graph.bytes(id));
      owner.resize(gaps_.size() - first_gap, biggest.size() - 1);
    }
    Wide sum = 0;
    for (const Bytes bytes : biggest) sum += bytes.count();
    if (sum == 0) continue;  // no output has gaps
    for (std::size_t i = first_gap; i < gaps_.size(); ++i)
      gaps_[i].share = static_cast<std::int32_t>(
          (Wide{biggest[owner[i - first_gap]].count()} << kShareBits) / sum);
  }
}

double GapCover::cost(const Gap& gap) const {
  return std::ldexp(static_cast<double>(gap.time) * gap.share, -kShareBits);
}

// Computes in dropped_ the bytes of the evicted gaps at each step.
double GapCover::value_at(std::span<const double> prices) {
  sums_.resize(prices.size() + 1);
  sums_[0] = 0;
  double value = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    sums_[i + 1] = sums_[i] + prices[i];
    value += prices[i] * static_cast<double>(excess_[i]);
  }
  dropped_.assign(prices.size() + 1, 0.0);
  for (const Gap& gap : gaps_) {
    const double bytes = static_cast<double>(gap.bytes);
    const double gain = bytes * (sums_[index(gap.past)] - sums_[index(gap.from)]) - cost(gap);
    if (gain <= 0) continue;
    value -= gain;
    dropped_[index(gap.from)] += bytes;
    dropped_[index(gap.past)] -= bytes;
  }
  for (std::size_t i = 0; i < prices.size(); ++i) dropped_[i + 1] += dropped_[i];
  return value;
}

void GapCover::run(Ticks target, std::int64_t steps, Limits& limits) {
  const std::int64_t units =
      1 + static_cast<std::int64_t>(gaps_.size() + 2 * excess_.size()) / kGapsPerUnit;
  for (std::int64_t step = 0; step < steps && !finished_; ++step) {
    if (limits.spend(units)) return;
    // With a target far too low, steps gain, but very little.
    finished_ = ++steps_ >= kMostSteps;
    const double value = value_at(prices_);
    if (value > best_ * (1 + 1e-7)) {
      best_ = value;
      best_prices_ = prices_;
      idle_ = 0;
    } else if (++idle_ > kPatience) {
      idle_ = 0;
      stride_ *= 0.7;
      prices_ = best_prices_;
      std::fill(direction_.begin(), direction_.end(), 0.0);
      if (++retreats_ > 30) finished_ = true;
      continue;
    }
    double norm = 0;
    for (std::size_t i = 0; i < prices_.size(); ++i) {
      direction_[i] = static_cast<double>(excess_[i]) - dropped_[i] + 0.6 * direction_[i];
      if (prices_[i] <= 0 && direction_[i] < 0) direction_[i] = 0;
      norm += direction_[i] * direction_[i];
    }
    if (norm <= 0) {
      finished_ = true;
      return;
    }
    const double aim = static_cast<double>(target.count());
    const double pace = stride_ * std::max(aim - value, 1e-4 * aim) / norm;
    for (std::size_t i = 0; i < prices_.size(); ++i)
      prices_[i] = std::max(0.0, prices_[i] + pace * direction_[i]);
  }
}

Ticks GapCover::certified() const {
  double highest = 0;
  for (const double price : best_prices_) highest = std::max(highest, price);
  if (!(highest > 0)) return Ticks(0);
  // Prices of at most 2^40, times of less than 2^63 x 2^60: products with bytes and sums over a
  // million steps stay below 2^127.
  const int shift = std::clamp(40 - std::ilogb(highest) - 1, 0, 60);
  std::vector<std::int64_t> sums(best_prices_.size() + 1, 0);
  Wide value = 0;
  for (std::size_t i = 0; i < best_prices_.size(); ++i) {
    const double scaled = std::min(std::ldexp(best_prices_[i], shift), 0x1p41);
    const auto price = static_cast<std::int64_t>(scaled);
    sums[i + 1] = sums[i] + price;
    value += Wide{price} * excess_[i];
  }
  for (const Gap& gap : gaps_) {
    const Wide gain = Wide{gap.bytes} * (sums[index(gap.past)] - sums[index(gap.from)]);
    const Wide whole = (Wide{gap.time} << shift) >> kShareBits;
    const Wide cost = gap.share == 1 << kShareBits ? Wide{gap.time} << shift : whole * gap.share;
    if (gain > cost) value -= gain - cost;
  }
  if (value <= 0) return Ticks(0);
  const Wide ticks = (value + ((Wide{1} << shift) - 1)) >> shift;
  return Ticks(static_cast<std::int64_t>(std::min(ticks, Wide{1} << 62)));
}

bool GapCover::infeasible() const {
  std::vector<Wide> droppable(excess_.size() + 1, 0);
  for (const Gap& gap : gaps_) {
    droppable[index(gap.from)] += gap.bytes;
    droppable[index(gap.past)] -= gap.bytes;
  }
  Wide sum = 0;
  for (std::size_t i = 0; i < excess_.size(); ++i) {
    sum += droppable[i];
    if (sum < excess_[i]) return true;
  }
  return false;
}

}  // namespace lowtide::solve::bounds

// C(s, t, m): the least time to process stages s to t, forward and backward, in m slots, if the
// border before s and the tensors after t that the backward of t needs exist. The minimum over
//   run s with an option, C(s + 1, t, m - held bytes), backward of s
//   pass s to k, C(k + 1, t, m), C(s, k, m)
//   pass s to k, C(k + 1, t, m - the border after k), C(s, k, m) with that border given
// The border before s counts in m until its last reader, unless the caller holds it anyway.
// (Beaumont et al. hold it to the end; here an option of a stage saves what it needs of it.) A
// given border counts in m until the backward before it has run. That backward needs no forward if
// it reads nothing else of the forward. So there are two cells for each s and t, and four if the
// backward of t can begin from a given border.
//
// The table has only cells of up to `band_` stages, since ranges that are recomputed at once are
// rarely long. With all cells, memory would grow with the square of the stages, and time with the
// cube. The tensors of backward nodes that are still needed depend on t alone. Cells that end at
// the last stage, or at `rest`, are separate: they run their stages for the first time, and the
// bytes that may be held at `rest` depend on the budget.
#include "lowtide/solve/hierarchy/block/rotor_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::solve::hierarchy {

namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();
constexpr std::size_t kLanes = 8;
constexpr std::size_t kEntriesOfWork = 4000;  // entries of rows, for each unit of work
constexpr double kMostEntries = 48e6;         // of all rows
constexpr double kTableShare = 0.7;           // of the work left
constexpr std::size_t kTile = 8;              // cells filled together, for the cache

// In chunks that are read completely before they are written, so that compilers vectorise the loop.
void relax(float* best, const float* left, const float* right, float time, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::array<float, kLanes> sum, least;
    for (std::size_t k = 0; k < kLanes; ++k) sum[k] = left[i + k] + right[i + k] + time;
    for (std::size_t k = 0; k < kLanes; ++k) least[k] = best[i + k];
    for (std::size_t k = 0; k < kLanes; ++k) best[i + k] = sum[k] < least[k] ? sum[k] : least[k];
  }
  for (; i < count; ++i) {
    const float sum = left[i] + right[i] + time;
    best[i] = sum < best[i] ? sum : best[i];
  }
}

float as_float(Ticks time) { return static_cast<float>(time.count()); }

}  // namespace

RotorTable::RotorTable(const ChainView& chain, bool has_rest, Bytes most, std::size_t slots,
                       Limits& limits)
    : chain_(chain), has_rest_(has_rest), stages_(chain.stages.size()) {
  std::int64_t common = 0;
  const auto share = [&](Bytes bytes) { common = std::gcd(common, bytes.count()); };
  const auto share_both = [&](ByRun bytes) { share(bytes.again), share(bytes.first); };
  share(chain.outputs);
  for (const Stage& stage : chain.stages) {
    share(stage.lasting), share(stage.in_use);
    for (const ByRun bytes : {stage.pass_peak, stage.pass_peak_with_border, stage.border})
      share_both(bytes);
    for (const StageOption& option : stage.options)
      for (const ByRun bytes :
           {option.forward_peak, option.backward_peak, option.forward_peak_with_border,
            option.backward_peak_with_border, option.held, option.held_before})
        share_both(bytes);
  }
  const std::int64_t bytes = std::max<std::int64_t>(1, most.count());
  unit_ = std::max<std::int64_t>(1, (bytes - 1) / static_cast<std::int64_t>(slots) + 1);
  if (common > unit_ || (common > 0 && bytes / common <= static_cast<std::int64_t>(slots)))
    unit_ = common;
  slots_ = static_cast<std::size_t>(bytes / unit_);
  count_slots();
  full_ = has_rest ? stages_ : stages_ - 1;
  band_ = longest(limits.work_left());
  fewest_.assign(kinds_ * full_ * band_, 0);
  fewest_last_.assign(2 * (stages_ + 1), 0);
  table_.assign(kinds_ * full_ * band_ * (slots_ + 1), kNever);
  last_.assign(2 * (stages_ + 1) * (slots_ + 1), kNever);
  for (std::size_t tile = 0; tile < full_; tile += kTile) {
    const std::size_t end = std::min(full_, tile + kTile);
    for (std::size_t from = end; from-- > 0 && from + band_ > tile;)
      for (std::size_t to = std::max(from, tile); to < std::min(end, from + band_); ++to) {
        fill(from, to);
        if (tell(limits)) return;
      }
  }
}

// The number of ways of a cell is that of its stages, and twice that if borders may be given.
std::size_t RotorTable::longest(std::int64_t work_left) const {
  const std::size_t most = std::max<std::size_t>(1, full_);
  const auto entries = static_cast<double>(kinds_ * most * (slots_ + 1));
  const auto work = static_cast<double>(std::max<std::int64_t>(0, work_left));
  const double ways = static_cast<double>(kinds_ / 2) * entries / kEntriesOfWork / 2;
  const double stages = std::min(kMostEntries / entries, std::sqrt(kTableShare * work / ways));
  return std::clamp<std::size_t>(static_cast<std::size_t>(stages), 1, most);
}

std::size_t RotorTable::slots_of(Bytes bytes) const {
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(bytes.count() / unit_, 0, static_cast<std::int64_t>(slots_)));
}

std::size_t RotorTable::up(Bytes bytes) const {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, (bytes.count() + unit_ - 1) / unit_));
}

void RotorTable::count_slots() {
  const auto narrow = [&](Bytes bytes) { return static_cast<std::uint32_t>(up(bytes)); };
  outputs_ = narrow(chain_.outputs);
  Bytes lasting;
  bool is_held = false;
  for (const Stage& stage : chain_.stages) {
    StageSlots slots{};
    slots.lasting = narrow(lasting);
    slots.in_use = narrow(stage.in_use);
    slots.pass_time = as_float(stage.pass_time);
    slots.may_pass = stage.may_pass;
    slots.is_held = std::exchange(is_held, false);
    lasting += stage.lasting;
    for (std::size_t first = 0; first < 2; ++first) {
      slots.pass[first] = narrow(stage.pass_peak.of(first));
      slots.pass_with_border[first] = narrow(stage.pass_peak_with_border.of(first));
      slots.border[first] = narrow(stage.border.of(first));
    }
    for (const StageOption& option : stage.options) {
      OptionSlots own{};
      own.forward_time = as_float(option.forward_time);
      own.backward_time = as_float(option.backward_time);
      slots.may_be_given |= slots.may_pass && option.needs_forward && !option.needs_inside;
      is_held = is_held || option.needs_border;
      for (std::size_t first = 0; first < 2; ++first) {
        own.forward[0][first] = narrow(option.forward_peak.of(first));
        own.forward[1][first] = narrow(option.forward_peak_with_border.of(first));
        own.backward[0][first] = narrow(option.backward_peak.of(first));
        own.backward[1][first] = narrow(option.backward_peak_with_border.of(first));
        const Bytes held = option.held.of(first);
        own.held[0][first] = narrow(held);
        own.held[1][first] = narrow(held + option.held_before.of(first));
      }
      slots.options.push_back(own);
    }
    is_held = is_held || slots.may_be_given;
    if (slots.may_be_given) kinds_ = 4;
    sizes_.push_back(std::move(slots));
  }
}

std::size_t RotorTable::number(const Cell& cell) const {
  const std::size_t own = cell.owns ? 1 : 0;
  if (cell.to == last()) return 2 * cell.from + own;
  return kinds_ * (cell.from * band_ + cell.to - cell.from) + (cell.given ? 2 : 0) + own;
}

float* RotorTable::row(const Cell& cell) {
  return &(cell.to == last() ? last_ : table_)[number(cell) * (slots_ + 1)];
}

std::uint32_t& RotorTable::fewest(const Cell& cell) {
  return (cell.to == last() ? fewest_last_ : fewest_)[number(cell)];
}

template <class Use>
void RotorTable::for_ways(const Cell& cell, Use use) {
  const auto [from, to, owns, given] = cell;
  const std::size_t first = to == last() ? 1 : 0, own = owns ? 1 : 0;
  // In use beside the tensors held for a later backward.
  std::size_t behind = first == 1 ? 0 : outputs_;
  if (to < stages_) behind += sizes_[to].in_use + (given ? sizes_[to].border[0] : 0);
  const StageSlots& stage = sizes_[from];
  for (std::size_t o = 0; o < stage.options.size(); ++o) {
    const OptionSlots& slots = stage.options[o];
    const StageOption& option = chain_.stages[from].options[o];
    Way way{.choice = {0, o}, .need = slots.backward[own][first], .time = slots.backward_time};
    if (runs_forward(cell, option)) {
      const std::size_t beside = behind + (first == 1 ? stage.lasting : 0);
      way.need = std::max(way.need, slots.forward[own][first] + beside);
      way.time += slots.forward_time;
    }
    if (from < to) {
      const Cell after{from + 1, to, !option.needs_border, given};
      way.shift = slots.held[own][first];
      way.need = std::max(way.need, way.shift + fewest(after));
      way.left = row(after);
    }
    use(way);
  }
  const std::size_t border = owns && from > 0 ? sizes_[from - 1].border[first] : 0;
  std::size_t need = 0;
  float time = 0;
  for (std::size_t k = from; k < std::min(to, from + band_) && sizes_[k].may_pass; ++k) {
    const StageSlots& passed = sizes_[k];
    const std::size_t peak = k == from ? passed.pass[first] : passed.pass_with_border[first];
    need = std::max(need, peak + border + behind + (first == 1 ? passed.lasting : 0));
    if (need > slots_) break;
    time += passed.pass_time;
    for (const bool holds : {false, true}) {
      if (holds && !passed.may_be_given) continue;
      const Cell after{k + 1, to, !holds, given}, again{from, k, owns, holds};
      const std::size_t shift = border + (holds ? passed.border[first] : 0);
      use(Way{.choice = {k + 1, 0, holds},
              .need = std::max({need, shift + fewest(after), std::size_t{fewest(again)}}),
              .time = time,
              .left = row(after),
              .right = row(again),
              .shift = shift});
    }
  }
}

void RotorTable::fill(std::size_t from, std::size_t to) {
  // Only cells that another cell can use.
  for (const bool given : {false, true}) {
    if (given && (to == last() || !sizes_[to].may_be_given)) continue;
    if (from == 0 || sizes_[from].is_held) fill({from, to, false, given});
    if (from > 0) fill({from, to, true, given});
  }
}

void RotorTable::fill(const Cell& cell) {
  float* best = row(cell);
  std::fill(best, best + slots_ + 1, kNever);
  for_ways(cell, [&](const Way& way) {
    const std::size_t need = way.need;
    if (need > slots_) return;
    work_ += slots_ + 1 - need;
    if (way.right != nullptr) {
      relax(best + need, way.left + need - way.shift, way.right + need, way.time,
            slots_ + 1 - need);
      return;
    }
    for (std::size_t m = need; m <= slots_; ++m)
      best[m] = std::min(best[m], (way.left == nullptr ? 0 : way.left[m - way.shift]) + way.time);
  });
  std::size_t least = 0;
  while (least <= slots_ && best[least] == kNever) ++least;
  fewest(cell) = static_cast<std::uint32_t>(least);
}

bool RotorTable::tell(Limits& limits) {
  const auto work = work_ / kEntriesOfWork;
  work_ %= kEntriesOfWork;
  return limits.spend(static_cast<std::int64_t>(work));
}

void RotorTable::fill_last(std::size_t needed_at_turn, Limits& limits) {
  if (turn_ == needed_at_turn) return;
  turn_.reset();
  std::size_t from = stages_;
  if (has_rest_) {
    for (const bool owns : {false, true}) {
      const Cell turn{stages_, stages_, owns};
      for (std::size_t m = 0; m <= slots_; ++m) row(turn)[m] = m >= needed_at_turn ? 0 : kNever;
      fewest(turn) = static_cast<std::uint32_t>(needed_at_turn);
    }
  }
  while (from-- > 0) {
    fill(from, last());
    if (tell(limits)) return;
  }
  turn_ = needed_at_turn;
}

std::optional<std::vector<LevelStep>> RotorTable::steps(std::size_t slots, std::size_t held,
                                                        std::size_t rest, Limits& limits) {
  rest_ = rest;
  fill_last(has_rest_ ? slots - std::min(slots, held) + outputs_ : 0, limits);
  const Cell all{0, last(), false};
  if (!turn_ || row(all)[slots] == kNever) return std::nullopt;
  std::vector<LevelStep> result;
  emit(all, slots, result);
  return result;
}

void RotorTable::emit(const Cell& cell, std::size_t slots, std::vector<LevelStep>& steps) {
  const auto append = [&](const std::vector<LevelStep>& more) {
    steps.insert(steps.end(), more.begin(), more.end());
  };
  const auto [from, to, owns, given] = cell;
  if (has_rest_ && from == stages_) return steps.push_back({rest_, 0});
  std::optional<Way> best;
  float least = kNever;
  for_ways(cell, [&](const Way& way) {
    if (slots < way.need) return;
    const float sum = (way.left == nullptr ? 0 : way.left[slots - way.shift]) +
                      (way.right == nullptr ? 0 : way.right[slots]) + way.time;
    if (!(sum < least)) return;
    least = sum;
    best = way;
  });
  check(best.has_value(), "a cell has a value without a way to it");
  const auto [until, rank, holds] = best->choice;
  if (until == 0) {
    const StageOption& option = chain_.stages[from].options[rank];
    if (runs_forward(cell, option)) append(option.forward);
    if (from < to) emit({from + 1, to, !option.needs_border, given}, slots - best->shift, steps);
    append(option.backward);
    return;
  }
  for (std::size_t k = from; k < until; ++k) append(chain_.stages[k].pass);
  emit({until, to, !holds, given}, slots - best->shift, steps);
  emit({from, until - 1, owns, holds}, slots, steps);
}

}  // namespace lowtide::solve::hierarchy

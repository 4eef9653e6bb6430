// Ranges are split at block borders; whole blocks change by their `lazy` value only. Of a hundred
// tried changes ninety are reverted, and each changes several ranges over the same blocks. So the
// excess is summed lazily, and restored from a log.
#include "lowtide/solve/local/common/state/profile.h"

#include <algorithm>
#include <utility>

namespace lowtide::solve::local {

void Profile::assign(std::vector<double> values) {
  values_ = IdVector<Slot, double>(std::move(values));
  const std::size_t blocks = values_.size() / kBlock;
  lazy_.assign(blocks, 0);
  top_.assign(blocks, 0);
  low_.assign(blocks, 0);
  spread_.assign(blocks, 0);
  steps_.assign(blocks, 0);
  above_.assign(blocks, 0);
  since_.assign(blocks, Since::untouched);
  committed_above_.assign(blocks, 0);
  touched_blocks_.clear();
  over_ = 0;
  refresh(Slot(0), Slot(values_.size() - 1));
}

bool Profile::within() const {
  if (over() > 1e-3 * budget_ + 1) return false;  // larger than any rounding error of the sum
  return std::all_of(top_.begin(), top_.end(), [&](double top) { return top <= budget_; });
}

void Profile::settle(std::size_t b) const {
  const double before = above_[b];
  above_[b] = 0;
  if (top_[b] > budget_) {
    ++touched_;
    above_[b] =
        kernels_.clamped_sum(values_.data() + b * kBlock, kBlock, budget_ - lazy_[b], kMostBytes);
  }
  over_ += above_[b] - before;
  since_[b] = Since::settled;
}

void Profile::settle() const {
  for (const std::size_t b : touched_blocks_)
    if (since_[b] == Since::stale) settle(b);
  stale_ = false;
}

void Profile::commit() {
  if (stale_) settle();
  for (const std::size_t b : touched_blocks_) since_[b] = Since::untouched;
  touched_blocks_.clear();
  committed_over_ = over_;
}

void Profile::reverted() {
  for (const std::size_t b : touched_blocks_) {
    if (committed_above_[b] == kMoved)
      settle(b);
    else
      above_[b] = committed_above_[b];
    since_[b] = Since::untouched;
  }
  touched_blocks_.clear();
  stale_ = false;
  over_ = committed_over_;
}

double Profile::peak() const { return *std::max_element(top_.begin(), top_.end()); }

void Profile::fill(Slot slot, double born) {
  double& value = values_[slot];
  value += kHole + born;
  const double now = value + lazy_[block(slot)];
  top_[block(slot)] = std::max(top_[block(slot)], now);
  low_[block(slot)] = std::min(low_[block(slot)], now);
  ++steps_[block(slot)];
  mark_moved(block(slot));
}

void Profile::vacate(Slot slot, double dying) {
  double& value = values_[slot];
  const double before = value + lazy_[block(slot)];
  mark_moved(block(slot));
  value -= kHole + dying;
  --steps_[block(slot)];
  if (before >= top_[block(slot)]) refresh_top(block(slot));
}

void Profile::refresh(Slot first, Slot last) {
  for (std::size_t b = block(first); b <= block(last); ++b) {
    mark_moved(b);
    refresh_top(b);
    steps_[b] = static_cast<std::int32_t>(
        std::count_if(values_.begin() + static_cast<std::ptrdiff_t>(b * kBlock),
                      values_.begin() + static_cast<std::ptrdiff_t>((b + 1) * kBlock),
                      [&](double value) { return value + lazy_[b] > -kHole / 2; }));
    find_low(b);
  }
}

void Profile::refresh_top(std::size_t b) {
  top_[b] = kernels_.max(values_.data() + b * kBlock, kBlock) + lazy_[b];
}

void Profile::find_low(std::size_t b) const {
  low_[b] =
      kernels_.least_above(values_.data() + b * kBlock, kBlock, -kHole / 2 - lazy_[b]) + lazy_[b];
  spread_[b] = top_[b] - low_[b];
}

double Profile::excess(Slot first, Slot last, double level, double cap, double enough) const {
  if (first > last) return 0;
  double sum = 0;
  const std::size_t last_block = block(last);
  touched_ += static_cast<std::int64_t>(last_block - block(first)) / 16 + 1;
  for (std::size_t b = block(first); b <= last_block && sum < enough; ++b) {
    if (top_[b] <= level) continue;
    const std::size_t begin = std::max(first.index(), b * kBlock);
    const std::size_t end = std::min(last.index() + 1, (b + 1) * kBlock);
    if (end - begin == kBlock && all_at(b, level + cap)) {
      sum += steps_[b] * cap;
      continue;
    }
    ++touched_;
    sum += kernels_.clamped_sum(values_.data() + begin, end - begin, level - lazy_[b], cap);
  }
  return sum;
}

void Profile::add_part(Slot first, Slot last, double delta) {
  const std::size_t b = block(first);
  const auto count = static_cast<std::size_t>(last - first + 1);
  double* values = values_.data() + first.index();
  ++touched_;
  if (top_[b] + std::max(0.0, delta) > budget_) mark(b);
  kernels_.add(values, count, delta);
  // The rest of the block matters only if the maximum was among these and falls.
  const double most = kernels_.max(values, count) + lazy_[b];
  if (delta > 0) {
    top_[b] = std::max(top_[b], most);
    return;
  }
  low_[b] += delta;
  if (most - delta >= top_[b]) refresh_top(b);
}

void Profile::add(Slot first, Slot last, double delta) {
  if (first > last || delta == 0) return;
  std::size_t from = block(first), to = block(last);
  if (from == to && last - first + 1 < Distance{kBlock}) return add_part(first, last, delta);
  if (first.index() % kBlock != 0) {
    add_part(first, Slot((from + 1) * kBlock - 1), delta);
    ++from;
  }
  if (last.index() % kBlock != kBlock - 1) {
    add_part(Slot(to * kBlock), last, delta);
    if (to == from) return;
    --to;
  }
  if (from > to) return;
  touched_ += static_cast<std::int64_t>(to - from) / 16 + 1;
  const double level = budget_ - std::max(0.0, delta);
  for (std::size_t b = from; b <= to; ++b)
    if (top_[b] > level) mark(b);
  for (std::size_t b = from; b <= to; ++b) {
    lazy_[b] += delta;
    top_[b] += delta;
    low_[b] += delta;
  }
}

Slot Profile::find_over(Slot from) const {
  const std::size_t blocks = top_.size(), start = block(from);
  for (std::size_t k = 0; k < blocks; ++k) {
    const std::size_t b = (start + k) % blocks;
    if (top_[b] <= budget_) continue;
    ++touched_;
    const std::size_t shift = k == 0 ? from.index() % kBlock : 0;
    const double level = budget_ - lazy_[b];
    for (std::size_t i = 0; i < kBlock; ++i) {
      const Slot slot(b * kBlock + (i + shift) % kBlock);
      if (values_[slot] > level) return slot;
    }
  }
  return {};
}

}  // namespace lowtide::solve::local

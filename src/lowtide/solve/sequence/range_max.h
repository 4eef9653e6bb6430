// Bytes over positions: adds to ranges, and the maximum of all or of a range, in logarithmic time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lowtide::solve {

class RangeMax {
 public:
  explicit RangeMax(std::span<const std::int64_t> values) : size_(1) {
    while (size_ < values.size()) size_ *= 2;
    largest_.assign(2 * size_, 0);
    added_.assign(size_, 0);
    std::copy(values.begin(), values.end(), largest_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t i = size_; i-- > 1;)
      largest_[i] = std::max(largest_[2 * i], largest_[2 * i + 1]);
  }

  std::int64_t largest() const { return largest_[1]; }

  // The maximum over [begin, end), which is not empty.
  std::int64_t largest(std::size_t begin, std::size_t end) const {
    constexpr std::int64_t kNone = INT64_MIN;
    std::int64_t left = kNone, right = kNone;
    std::size_t low = begin + size_, high = end + size_;
    for (; low < high; low /= 2, high /= 2) {
      // What was taken so far lies below the node left of `low`, and below `high`.
      if (left != kNone) left += added_[low - 1];
      if (right != kNone) right += added_[high];
      if (low % 2 == 1) left = std::max(left, largest_[low++]);
      if (high % 2 == 1) right = std::max(right, largest_[--high]);
    }
    for (--low; low > 0 && left != kNone; low /= 2) left += added_[low];
    for (; high > 0 && right != kNone; high /= 2) right += added_[high];
    return std::max(left, right);
  }

  // Adds to [begin, end), which may be empty.
  void add(std::size_t begin, std::size_t end, std::int64_t value) {
    if (begin >= end || value == 0) return;
    // Both ends go up together. What lies above a node that was added to is lifted: that is the
    // one left of `low`, and `high`.
    std::size_t low = begin + size_, high = end + size_;
    bool left = false, right = false;
    for (; low < high; low /= 2, high /= 2) {
      if (left) lift(low - 1);
      if (right) lift(high);
      if (low % 2 == 1) apply(low++, value), left = true;
      if (high % 2 == 1) apply(--high, value), right = true;
    }
    // No more is added, so a node that does not change ends it.
    for (--low; high > 0 && (left || right); low /= 2, high /= 2) {
      if (low == high) {
        left = right = lift(low);
      } else {
        if (left) left = low > 0 && lift(low);
        if (right) right = lift(high);
      }
    }
  }

  // The maximum of all.
  std::vector<std::int64_t> values(std::size_t count) const {
    std::vector<std::int64_t> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      result[i] = largest_[i + size_];
      for (std::size_t above = (i + size_) / 2; above > 0; above /= 2) result[i] += added_[above];
    }
    return result;
  }

 private:
  void apply(std::size_t i, std::int64_t value) {
    largest_[i] += value;
    if (i < size_) added_[i] += value;
  }
  // Updates a node from its two children; returns whether it has changed.
  bool lift(std::size_t i) {
    const std::int64_t now = std::max(largest_[2 * i], largest_[2 * i + 1]) + added_[i];
    return std::exchange(largest_[i], now) != now;
  }

  std::size_t size_;
  std::vector<std::int64_t> largest_, added_;
};

}  // namespace lowtide::solve

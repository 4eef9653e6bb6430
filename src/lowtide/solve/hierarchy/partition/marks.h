// A set of small integers that is cleared in constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lowtide::solve::partition {

// Marks; `clear` removes all of them at once.
class Marks {
 public:
  explicit Marks(std::size_t count) : marks_(count, 0) {}
  void clear() { ++round_; }
  bool operator[](std::size_t i) const { return marks_[i] == round_; }
  // Adds a mark; returns whether it is new.
  bool add(std::size_t i) { return std::exchange(marks_[i], round_) != round_; }

 private:
  std::vector<std::uint32_t> marks_;
  std::uint32_t round_ = 1;
};

}  // namespace lowtide::solve::partition

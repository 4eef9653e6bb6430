// Which of many things have been seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lowtide::solve::partition {

// Marks that fall away all at once.
class Marks {
 public:
  explicit Marks(std::size_t count) : marks_(count, 0) {}
  void clear() { ++round_; }
  bool operator[](std::size_t i) const { return marks_[i] == round_; }
  // Whether it was new.
  bool add(std::size_t i) { return std::exchange(marks_[i], round_) != round_; }

 private:
  std::vector<std::uint32_t> marks_;
  std::uint32_t round_ = 1;
};

}  // namespace lowtide::solve::partition

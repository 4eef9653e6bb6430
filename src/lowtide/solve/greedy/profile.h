// A sequence of numbers that grows at its end, with additions to suffixes: the bytes in use at each
// step of a run, while decisions change the tensors held since an earlier step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lowtide/base/units.h"

namespace lowtide::solve::greedy {

class Profile {
 public:
  std::size_t size() const { return size_; }
  // All three are logarithmic in the size.
  void append(Bytes value);
  void add_from(std::size_t begin, Bytes change);  // to every number from `begin` on
  Bytes max_from(std::size_t begin) const;         // `begin` < size

 private:
  // A node of a binary tree over the differences between neighbours: their sum, and the largest sum
  // of a non-empty prefix.
  struct Node {
    std::int64_t sum = 0, best = 0;
  };
  static Node join(const Node& left, const Node& right);
  void grow();
  void set(std::size_t at, std::int64_t difference);

  std::vector<Node> nodes_;  // root at 1, leaves from capacity on
  std::size_t capacity_ = 0, size_ = 0;
  std::int64_t last_ = 0;
};

}  // namespace lowtide::solve::greedy

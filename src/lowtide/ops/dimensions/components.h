// Finds tensors that must be divided together, since one op sees slices of both. Private to the
// folder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace lowtide::dimensions {

// Disjoint sets of 0 .. count - 1, each with its longest axis.
class Components {
 public:
  explicit Components(std::size_t count) : above_(count), longest_(count, 0) {
    std::iota(above_.begin(), above_.end(), std::size_t{0});
  }

  std::size_t of(std::size_t item) {
    while (above_[item] != item) item = above_[item] = above_[above_[item]];
    return item;
  }
  void unite(std::size_t a, std::size_t b) {
    a = of(a);
    b = of(b);
    longest_[a] = std::max(longest_[a], longest_[b]);
    above_[b] = a;
  }
  void lengthen(std::size_t item, std::int64_t slices) {
    std::int64_t& longest = longest_[of(item)];
    longest = std::max(longest, slices);
  }
  std::int64_t longest(std::size_t item) { return longest_[of(item)]; }

 private:
  std::vector<std::size_t> above_;
  std::vector<std::int64_t> longest_;
};

}  // namespace lowtide::dimensions

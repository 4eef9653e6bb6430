// Values of sections: the largest of a range, and a range raised as a whole. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/layout/sections.h"

namespace lowtide::layout {

class RangeMaxTree {
 public:
  void reset(std::span<const std::int64_t> values);
  // Of first, ..., last - 1.
  void raise(std::int32_t first, std::int32_t last, std::int64_t by);
  struct Largest {
    std::int64_t value = INT64_MIN;
    std::int32_t section = -1;  // the first one that has it
  };
  Largest largest(std::int32_t first, std::int32_t last) const;

 private:
  // A node's largest counts what it was raised by itself, but not what nodes above it were.
  struct Node {
    std::int64_t largest = INT64_MIN, raised = 0;
    std::int32_t section = -1;
  };
  void join(std::size_t node);
  void raise(std::size_t node, std::size_t begin, std::size_t end, std::size_t first,
             std::size_t last, std::int64_t by);
  Largest look(std::size_t node, std::size_t begin, std::size_t end, std::size_t first,
               std::size_t last) const;

  std::size_t leaves_ = 0;
  std::vector<Node> nodes_;  // of node i the halves are 2i and 2i + 1; the root is 1
};

}  // namespace lowtide::layout

// Shapes of HLO: arrays ("f32[8,256]{1,0}") and tuples of shapes. Private to the room.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/hlo/number_type.h"

namespace lowtide::io::hlo {

// The memory space of pinned host memory, in XLA's numbering.
inline constexpr int kHostSpace = 5;
inline constexpr int kMaxTupleDepth = 100;

struct Shape {
  const NumberType* type = nullptr;  // null: a tuple
  std::vector<std::int64_t> dims;    // of a dynamic dimension, its upper limit
  std::string_view layout;           // as written, braces included; may be empty
  int space = 0;                     // the memory space
  Bytes bytes;                       // what the array takes, wherever it is, tiles padded
  std::vector<Shape> elements;       // of a tuple

  // The arrays in it, those of inner tuples too, in order. `first_leaf`: the index of its first
  // among those of the tuple that it is an element of.
  std::uint32_t leaves = 1, first_leaf = 0;

  bool is_tuple() const { return type == nullptr; }
  // The number of elements of an array; it fits, as its parser checked.
  std::int64_t numbers() const;
};

// InputError for what is no shape, unknown number types, dimensions without a limit, tuples nested
// deeper than kMaxTupleDepth, and arrays of 2^63 bytes or more.
Shape parse_shape(Cursor& cursor);

// Whether both are arrays that have the number of each index in the same place.
bool same_places(const Shape& a, const Shape& b);

// Whether one can stand where the other is expected: tuples of equal structure, arrays of equal
// type and dimensions. Layouts and memory spaces may differ.
bool compatible(const Shape& a, const Shape& b);

// Calls visit(const Shape&) for each leaf, in order.
template <class Visit>
void for_each_leaf(const Shape& shape, const Visit& visit) {
  if (!shape.is_tuple()) return visit(shape);
  for (const Shape& element : shape.elements) for_each_leaf(element, visit);
}

}  // namespace lowtide::io::hlo

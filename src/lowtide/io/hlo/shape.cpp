// Sizes are those of XLA's buffers: elements of less than a byte are packed, and the last
// dimensions, in the order of the layout, are padded to whole tiles.
#include "lowtide/io/hlo/shape.h"

#include <algorithm>
#include <string>

#include "lowtide/base/error.h"
#include "lowtide/io/hlo/counts.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

// What a layout says beside the order of the dimensions.
struct Layout {
  std::vector<std::int64_t> minor_to_major, tile;  // of several tiles, the outermost
  int space = 0, bits = 0;                         // bits: of an element, if stated
};

std::vector<std::int64_t> list_of(Cursor& cursor, char end) {
  std::vector<std::int64_t> list;
  while (!cursor.take(end)) {
    // T(2,*,128): a '*' joins two dimensions
    list.push_back(cursor.take('*') ? -1 : cursor.integer());
    if (!cursor.take(',') && cursor.peek() != end) cursor.expect(end, "after a list of numbers");
  }
  return list;
}

Layout parse_layout(Cursor cursor) {
  Layout layout;
  cursor.expect('{', "before a layout");
  while (cursor.peek() >= '0' && cursor.peek() <= '9') {
    layout.minor_to_major.push_back(cursor.integer());
    if (!cursor.take(',')) break;
  }
  if (!cursor.take(':')) return layout;
  while (!cursor.take('}')) {
    if (cursor.take("T(")) {
      layout.tile = list_of(cursor, ')');
      while (cursor.take('(')) list_of(cursor, ')');
    } else if (cursor.take("S(")) {
      layout.space = static_cast<int>(std::clamp<std::int64_t>(cursor.integer(), -1, 1 << 20));
      cursor.expect(')', "after a memory space");
    } else if (cursor.take("E(")) {
      layout.bits = static_cast<int>(std::clamp<std::int64_t>(cursor.integer(), 0, 1024));
      cursor.expect(')', "after the bits of an element");
    } else if (cursor.peek() == '(') {
      cursor.group();  // of other properties: L(...), P(...)
    } else {
      cursor.seek(cursor.at() + 1);
    }
  }
  return layout;
}

// The extents in memory, tiles padded.
std::vector<std::int64_t> padded(const std::vector<std::int64_t>& dims, const Layout& layout) {
  const std::size_t rank = dims.size(), tiled = layout.tile.size();
  const bool plain = tiled == 0 || tiled > rank || layout.minor_to_major.size() != rank ||
                     std::ranges::any_of(layout.tile, [](auto extent) { return extent <= 0; });
  std::vector<std::int64_t> extents = dims;
  if (plain) return extents;
  for (std::size_t i = 0; i < tiled; ++i) {
    const std::int64_t dim = layout.minor_to_major[i], tile = layout.tile[tiled - 1 - i];
    if (dim < 0 || static_cast<std::size_t>(dim) >= rank) return dims;
    std::int64_t& extent = extents[static_cast<std::size_t>(dim)];
    extent = product({extent / tile + (extent % tile != 0), tile});
  }
  return extents;
}

Bytes bytes_of(const Shape& shape, const Layout& layout) {
  const bool takes_none = shape.type->bits == 0 || shape.numbers() == 0;
  if (takes_none) return Bytes(0);
  const int bits = layout.bits > 0 ? layout.bits : shape.type->bits;
  std::int64_t numbers = 1;
  for (const std::int64_t extent : padded(shape.dims, layout)) numbers = product({numbers, extent});
  return Bytes(checked_mul_div(numbers, bits, 8, Rounding::ceil));
}

std::int64_t parse_dimension(Cursor& cursor) {
  cursor.take("<=");
  const std::size_t at = cursor.at();
  if (cursor.take('?'))
    cursor.refuse_at(at,
                     "a dimension without a limit (?); lower the module for shapes that are known, "
                     "or with an upper limit for this dimension (<=128)");
  const std::int64_t extent = cursor.integer();
  if (extent < 0) cursor.refuse_at(at, "a dimension must not be negative");
  return extent;
}

Shape parse_array(Cursor& cursor) {
  cursor.skip_space();
  const std::size_t at = cursor.at();
  const std::string_view name = cursor.word();
  Shape shape;
  shape.type = find_number_type(name);
  if (name.empty() || cursor.peek() != '[')
    cursor.refuse_at(at, "expected a shape, such as f32[8,256]");
  if (shape.type == nullptr)
    cursor.refuse_at(at, "unknown number type " + quoted(name) +
                             "; known are pred, s and u with 1 to 64 bits, f16, bf16, f32, f64, "
                             "f8..., f6..., f4e2m1fn, c64, c128, token, opaque");
  cursor.expect('[', "before the dimensions");
  while (!cursor.take(']')) {
    shape.dims.push_back(parse_dimension(cursor));
    if (!cursor.take(',') && cursor.peek() != ']') cursor.expect(']', "after the dimensions");
  }
  Layout layout;
  if (cursor.peek() == '{') {  // a space before it would make it the body of a computation
    const Cursor inside = cursor;
    shape.layout = cursor.group();
    layout = parse_layout(inside);
  }
  shape.space = layout.space;
  try {
    shape.bytes = bytes_of(shape, layout);
  } catch (const OverflowError&) {
    cursor.refuse_at(at, "a shape of 2^63 bytes or more");
  }
  return shape;
}

Shape parse_nested(Cursor& cursor, int depth) {
  if (!cursor.take('(')) return parse_array(cursor);
  if (depth == kMaxTupleDepth)
    cursor.refuse("tuples in tuples, more than " + std::to_string(kMaxTupleDepth) + " deep");
  Shape tuple;
  tuple.leaves = 0;
  while (!cursor.take(')')) {
    tuple.elements.push_back(parse_nested(cursor, depth + 1));
    tuple.elements.back().first_leaf = tuple.leaves;
    tuple.leaves += tuple.elements.back().leaves;
    if (!cursor.take(',') && cursor.peek() != ')') cursor.expect(')', "after a tuple's shapes");
  }
  return tuple;
}

}  // namespace

std::int64_t Shape::numbers() const {
  if (std::ranges::find(dims, 0) != dims.end()) return 0;
  std::int64_t all = 1;
  for (const std::int64_t extent : dims) all = product({all, extent});
  return all;
}

Shape parse_shape(Cursor& cursor) { return parse_nested(cursor, 0); }

bool same_places(const Shape& a, const Shape& b) {
  return !a.is_tuple() && !b.is_tuple() && a.dims == b.dims && a.layout == b.layout;
}

bool compatible(const Shape& a, const Shape& b) {
  return a.type == b.type && a.dims == b.dims &&
         std::ranges::equal(a.elements, b.elements, compatible);
}

}  // namespace lowtide::io::hlo

// An axis divides a storage into slices. It is identified by the position of its elements in the
// storage, never by an extent, which may be equal by chance.
//
// Slice i of an axis is all bytes of the storage at places with (place / stride) % extent == i. So
// a contiguous f32 tensor of shape [T, B, D] has the axis {B, 4 D} along its dimension 1. The view
// [T B, D] of it has the same axis within dimension 0, where index x is in slice (x / inner) %
// extent with inner = 1. Views keep axes; they change the dimension in which an operand sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "lowtide/graph/graph.h"

namespace lowtide::dimensions {

struct Axis {
  std::int64_t extent = 0;  // number of slices, two or more
  std::int64_t stride = 0;  // bytes of one slice at one place: those inside the axis

  bool operator==(const Axis&) const = default;
};

// How an operand sees an axis: along this dimension, index x is in slice (x / inner) % extent. If
// inner = 1 and there are as many indices as slices, the dimension is the axis. `extent` is the
// number of slices that the operand sees: all, or only the first ones, once each (a crop, as in
// `logits[:, :-1]`).
struct Position {
  std::size_t dim = 0;
  std::int64_t inner = 1;
  std::int64_t extent = 0;

  bool operator==(const Position&) const = default;
};

// The reason why an operand has no such axis, in words that follow "op 3 \"mm_3\" ".
struct Misfit {
  std::string reason;
};

// Whether `slices` of an axis's `extent` slices are all or a crop: if the axis is divided in two,
// both parts must have at least two of them.
bool may_crop(std::int64_t extent, std::int64_t slices);

// How the operand sees an axis of its tensor's storage. A Misfit if the slices that it sees are
// neither all nor a crop, if the axis lies across its dimensions, or if the number type is unknown.
std::variant<Position, Misfit> locate(const Operand& operand, const Axis& axis);

// The axis of the storage that the operand sees completely at this position. Empty if the operand
// is broadcast there (stride 0): every slice of it is the whole. A Misfit if these slices of the
// operand are not slices of its storage, which has `bytes` bytes.
std::variant<std::optional<Axis>, Misfit> place(const Operand& operand, const Position& position,
                                                Bytes storage);

// Whether the operand has as many elements as a storage of that many bytes.
bool sees_all(const Operand& operand, Bytes storage);

// The axis of the storage of which the operand sees a crop at this position; empty if there is
// none. `layout`: the tensor as an operand that sees all of it.
std::optional<Axis> place_crop(const Operand& operand, const Position& position,
                               const Operand& layout, Bytes storage);

// A part of an axis: the slices from `first` on.
struct Slices {
  std::int64_t first = 0, count = 0;
};

// The part of an axis with fewer slices: tensors that differ by a crop are divided at the same
// places.
Slices clipped(const Slices& part, std::int64_t extent);

// The bytes of a storage that holds only that many slices of this axis.
Bytes part_bytes(Bytes whole, const Axis& axis, std::int64_t count);

// A part's operand, whose tensor holds only these slices of the axis: fewer indices along
// `position`, and the strides and offset of the smaller storage.
Operand in_part(const Operand& operand, const Position& position, const Axis& axis,
                const Slices& part);

// A part's operand that reads these slices from the whole storage. Empty if they do not form a
// strided view, as with an axis inside a dimension that contains it several times. Then the slices
// must be copied.
std::optional<Operand> in_whole(const Operand& operand, const Position& position,
                                const Slices& part);

}  // namespace lowtide::dimensions

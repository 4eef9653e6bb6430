// An axis: a way to cut a storage into slices, followed by where its elements lie and never by an
// extent that happens to be equal.
//
// Slice i of an axis are all bytes of the storage whose place has (place / stride) % extent == i.
// So a tensor of shape [T, B, D], contiguous, in f32, has the axis {B, 4 D} along its dimension 1;
// the view [T B, D] of it has the same axis inside dimension 0, where index x is of slice
// (x / inner) % extent with inner = 1. Views keep axes; what they change is where an operand sees
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "lowtide/graph/graph.h"

namespace lowtide::dimensions {

struct Axis {
  std::int64_t extent = 0;  // number of slices, two or more
  std::int64_t stride = 0;  // bytes that one slice takes in one place: those inside the axis

  bool operator==(const Axis&) const = default;
};

// Where an operand sees an axis: along this dimension, index x is of slice (x / inner) % extent.
// With inner = 1 and as many indices as slices, the dimension is the axis. `extent` is how many
// slices it sees: all, or the first of them, once each: a crop, as `logits[:, :-1]`.
struct Position {
  std::size_t dim = 0;
  std::int64_t inner = 1;
  std::int64_t extent = 0;

  bool operator==(const Position&) const = default;
};

// Why an axis is not where it would have to be, in words that follow "op 3 \"mm_3\" ".
struct Misfit {
  std::string reason;
};

// Whether so many of an axis's slices, or all, are a crop of it: cut into two, both parts have two
// or more left.
bool may_crop(std::int64_t extent, std::int64_t slices);

// Where the operand sees an axis of its tensor's storage. A Misfit if it sees some slices only that
// are no crop, or the axis lies across its dimensions, or the number type is not known.
std::variant<Position, Misfit> locate(const Operand& operand, const Axis& axis);

// The axis of the storage that an operand sees all of at this position. Nothing if the operand does
// not vary there (stride 0): every slice of it is the whole. A Misfit if these slices of the
// operand are no slices of its storage, which has so many bytes.
std::variant<std::optional<Axis>, Misfit> place(const Operand& operand, const Position& position,
                                                Bytes storage);

// Whether the operand reaches as many elements as a storage of so many bytes has.
bool sees_all(const Operand& operand, Bytes storage);

// The axis of the storage of which an operand sees a crop at this position; nothing if there is
// none. `layout`: the tensor as an operand that sees all of it.
std::optional<Axis> place_crop(const Operand& operand, const Position& position,
                               const Operand& layout, Bytes storage);

// What a part of an axis is: the slices from `first` on.
struct Slices {
  std::int64_t first = 0, count = 0;
};

// Those of them that there are among so many: tensors that are longer and shorter by a crop are cut
// at the same places.
Slices clipped(const Slices& part, std::int64_t extent);

// The bytes of a storage that holds only so many slices of one with this axis.
Bytes part_bytes(Bytes whole, const Axis& axis, std::int64_t count);

// The operand as a part sees it, whose tensor holds only these slices of the axis: fewer indices
// along `position`, strides and offset of the smaller storage.
Operand in_part(const Operand& operand, const Position& position, const Axis& axis,
                const Slices& part);

// The operand as a part sees it that reads these slices of the whole storage. Nothing if they are
// no strided part of it: an axis inside a dimension that holds it several times. Then the slices
// must be copied.
std::optional<Operand> in_whole(const Operand& operand, const Position& position,
                                const Slices& part);

}  // namespace lowtide::dimensions

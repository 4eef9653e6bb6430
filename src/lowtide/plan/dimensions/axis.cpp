// Slices of a storage and where operands see them.
//
// An operand reaches element offset + sum of x_d stride_d. With Q elements inside an axis of E
// slices, an element is of slice (element / Q) % E. So that this is (x_d / inner) % E for one
// dimension d and all x, every other dimension must either stay inside one slice (all of them
// together take fewer than Q elements) or step over whole rounds of E Q. A dimension with stride s
// < Q that goes on beyond Q holds the axis with inner = Q / s. What does not fit this is a Misfit,
// though it may be sliceable in some other way: a dimension that steps backwards through a round,
// or an axis of B T slices that a view sees as B and T.
#include "lowtide/plan/dimensions/axis.h"

#include <string>

#include "lowtide/plan/dimensions/words.h"

namespace lowtide::dimensions {

namespace {

Misfit across(const Operand& operand) {
  return {"sees the axis across several dimensions of " + name_of(operand)};
}

// Extents and strides of graphs fit 63 bits, their products need not.
bool multiply(std::int64_t a, std::int64_t b, std::int64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

}  // namespace

std::variant<Position, Misfit> locate(const Operand& operand, const Axis& axis) {
  const auto element = element_bytes(operand.dtype);
  if (!element)
    return Misfit{"has " + name_of(operand) + " of the number type \"" + operand.dtype +
                  "\", whose size is not known"};
  std::int64_t round = 0;
  if (axis.extent < 2 || axis.stride < *element || axis.stride % *element != 0 ||
      !multiply(axis.stride / *element, axis.extent, round))
    return Misfit{"sees elements of " + name_of(operand) + " that no slice holds whole"};
  const std::int64_t inside = axis.stride / *element;
  std::optional<Position> found;
  std::int64_t reach = operand.offset % inside;  // within a slice, from its begin
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    const std::int64_t count = operand.shape[d], stride = operand.strides[d];
    if (count == 0) return Misfit{"has no elements in " + name_of(operand)};
    if (count == 1 || stride == 0) continue;
    if (stride > inside) {
      if (stride % round != 0) return across(operand);
      continue;
    }
    if ((count - 1) * stride < inside) {
      reach += (count - 1) * stride;  // alone it stays inside; beside the others it may not
      continue;
    }
    if (found) return across(operand);
    if (inside % stride != 0) return across(operand);
    found = Position{d, inside / stride};
    reach += inside - stride;
  }
  const std::int64_t first = operand.offset / inside % axis.extent;
  if (!found)
    return Misfit{"takes one slice of " + name_of(operand) + ", number " + std::to_string(first)};
  const std::int64_t count = operand.shape[found->dim];
  if (reach >= inside) return across(operand);
  if (first != 0 || count / found->inner % axis.extent != 0 || count % found->inner != 0)
    return Misfit{"takes other slices of " + name_of(operand) +
                  " than all: " + std::to_string(count / found->inner) + " from number " +
                  std::to_string(first) + " of " + std::to_string(axis.extent)};
  return *found;
}

std::variant<std::optional<Axis>, Misfit> place(const Operand& operand, const Position& position,
                                                std::int64_t extent, Bytes storage) {
  const std::int64_t count = operand.shape[position.dim], stride = operand.strides[position.dim];
  std::int64_t round = 0;
  if (!multiply(position.inner, extent, round) || count == 0 || count % round != 0)
    return Misfit{"has " + std::to_string(count) + " indices along dimension " +
                  std::to_string(position.dim) + " of " + name_of(operand) +
                  ", which are no multiple of the axis's"};
  if (stride == 0) return std::optional<Axis>();
  const auto element = element_bytes(operand.dtype);
  Axis axis{extent, 0};
  if (!element || !multiply(position.inner, stride, axis.stride) ||
      !multiply(axis.stride, *element, axis.stride) || !multiply(axis.stride, extent, round))
    return Misfit{"has " + name_of(operand) + " of a number type or a size that is not known"};
  const auto seen = locate(operand, axis);
  if (const auto* misfit = std::get_if<Misfit>(&seen)) return *misfit;
  if (std::get<Position>(seen) != position) return across(operand);
  // What allocators round storages up to holds no elements.
  constexpr std::int64_t kBlock = 512;
  const std::int64_t rest = storage.count() % round;
  if (rest != 0 && (storage.count() % kBlock != 0 || rest >= kBlock || storage.count() < round))
    return Misfit{"sees slices of " + name_of(operand) + " that are no slices of its storage"};
  return std::optional<Axis>(axis);
}

Bytes part_bytes(Bytes whole, const Axis& axis, std::int64_t count) {
  const std::int64_t round = axis.stride * axis.extent;
  const std::int64_t bytes = whole.count() / round * axis.stride * count;
  constexpr std::int64_t kBlock = 512;
  return Bytes(whole.count() % round == 0 ? bytes : (bytes + kBlock - 1) / kBlock * kBlock);
}

Operand in_part(const Operand& operand, const Position& position, const Axis& axis,
                std::int64_t count) {
  Operand part = operand;
  std::int64_t& indices = part.shape[position.dim];
  indices = indices / axis.extent * count;
  const auto element = element_bytes(operand.dtype);
  if (!element || operand.strides[position.dim] == 0) return part;
  const std::int64_t inside = axis.stride / *element, round = inside * axis.extent;
  for (std::int64_t& stride : part.strides)
    if (stride >= round && stride % round == 0) stride = stride / axis.extent * count;
  part.offset = operand.offset / round * inside * count + operand.offset % round;
  return part;
}

std::optional<Operand> in_whole(const Operand& operand, const Position& position, const Axis& axis,
                                Slices slices) {
  Operand part = operand;
  std::int64_t& indices = part.shape[position.dim];
  const std::int64_t stride = operand.strides[position.dim];
  if (stride != 0 && (indices % axis.extent != 0 || indices / axis.extent != position.inner))
    return std::nullopt;
  indices = indices / axis.extent * slices.count;
  part.offset += slices.first * position.inner * stride;
  return part;
}

}  // namespace lowtide::dimensions

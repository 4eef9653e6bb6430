// Slices of a storage and where operands see them.
//
// An operand reaches element offset + sum of x_d stride_d. With Q elements inside an axis of E
// slices, an element is of slice (element / Q) % E. So that this is (x_d / inner) % E for one
// dimension d and all x, every other dimension must either stay inside one slice (all of them
// together take fewer than Q elements) or step over whole rounds of E Q. A dimension with stride s
// < Q that goes on beyond Q holds the axis with inner = Q / s. What does not fit this is a Misfit,
// though it may be sliceable in some other way: a dimension that steps backwards through a round,
// or an axis of B T slices that a view sees as B and T.
//
// A crop leaves out the last slices, so it begins with the first and holds each once.
#include "lowtide/ops/dimensions/axis.h"

#include <algorithm>
#include <string>

#include "lowtide/ops/dimensions/words.h"

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

bool may_crop(std::int64_t extent, std::int64_t slices) {
  return slices <= extent && slices - (extent - extent / 2) >= 2;
}

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
    found = Position{d, inside / stride, axis.extent};
    reach += inside - stride;
  }
  const std::int64_t first = operand.offset / inside % axis.extent;
  if (!found)
    return Misfit{"takes one slice of " + name_of(operand) + ", number " + std::to_string(first)};
  const std::int64_t count = operand.shape[found->dim], slices = count / found->inner;
  if (reach >= inside) return across(operand);
  const bool all = slices % axis.extent == 0;
  if (first != 0 || count % found->inner != 0 || (!all && !may_crop(axis.extent, slices)))
    return Misfit{"takes other slices of " + name_of(operand) +
                  " than all: " + std::to_string(slices) + " from number " + std::to_string(first) +
                  " of " + std::to_string(axis.extent)};
  if (!all) found->extent = slices;
  return *found;
}

std::variant<std::optional<Axis>, Misfit> place(const Operand& operand, const Position& position,
                                                Bytes storage) {
  const std::int64_t count = operand.shape[position.dim], stride = operand.strides[position.dim];
  const std::int64_t extent = position.extent;
  std::int64_t round = 0;
  if (extent < 1 || !multiply(position.inner, extent, round) || count == 0 || count % round != 0)
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
  // Allocators round storages up; the rest holds no elements.
  constexpr std::int64_t kBlock = 512;
  const std::int64_t rest = storage.count() % round;
  if (rest != 0 && (storage.count() % kBlock != 0 || rest >= kBlock || storage.count() < round))
    return Misfit{"sees slices of " + name_of(operand) + " that are no slices of its storage"};
  return std::optional<Axis>(axis);
}

bool sees_all(const Operand& operand, Bytes storage) {
  std::int64_t bytes = element_bytes(operand.dtype).value_or(1);
  for (std::size_t d = 0; d < operand.shape.size(); ++d)
    if (operand.strides[d] != 0 && !multiply(bytes, operand.shape[d], bytes)) return true;
  return bytes >= storage.count();
}

std::optional<Axis> place_crop(const Operand& operand, const Position& position,
                               const Operand& layout, Bytes storage) {
  const auto element = element_bytes(operand.dtype);
  std::int64_t inside = 0, stride = 0;
  if (!element || layout.dtype != operand.dtype ||
      !multiply(operand.strides[position.dim], position.inner, inside) || inside < 1 ||
      !multiply(inside, *element, stride))
    return std::nullopt;
  // Dimensions of the operand outside of the axis step over whole rounds of it.
  std::int64_t round = 0;
  for (std::size_t d = 0; d < operand.shape.size(); ++d)
    if (operand.shape[d] > 1 && operand.strides[d] > inside)
      round = round == 0 ? operand.strides[d] : std::min(round, operand.strides[d]);
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    const std::int64_t step = layout.strides[d];
    if (step < 1 || step > inside || inside % step != 0) continue;
    const std::int64_t inner = inside / step;
    const std::int64_t extent = round != 0 ? round / inside : layout.shape[d] / inner;
    if (extent < position.extent) continue;
    const Axis axis{extent, stride};
    const auto all = place(layout, {d, inner, extent}, storage);
    const auto* made = std::get_if<std::optional<Axis>>(&all);
    if (made == nullptr || *made != axis) continue;
    const auto seen = locate(operand, axis);
    const auto* at = std::get_if<Position>(&seen);
    if (at != nullptr && *at == position) return axis;
  }
  return std::nullopt;
}

Slices clipped(const Slices& part, std::int64_t extent) {
  const std::int64_t first = std::min(part.first, extent);
  return {first, std::min(part.count, extent - first)};
}

Bytes part_bytes(Bytes whole, const Axis& axis, std::int64_t count) {
  const std::int64_t round = axis.stride * axis.extent;
  const std::int64_t bytes = whole.count() / round * axis.stride * count;
  constexpr std::int64_t kBlock = 512;
  return Bytes(whole.count() % round == 0 ? bytes : (bytes + kBlock - 1) / kBlock * kBlock);
}

Operand in_part(const Operand& operand, const Position& position, const Axis& axis,
                const Slices& part) {
  Operand seen = operand;
  std::int64_t& indices = seen.shape[position.dim];
  indices = indices / position.extent * clipped(part, position.extent).count;
  const auto element = element_bytes(operand.dtype);
  if (!element || operand.strides[position.dim] == 0) return seen;
  const std::int64_t held = clipped(part, axis.extent).count;
  const std::int64_t inside = axis.stride / *element, round = inside * axis.extent;
  for (std::int64_t& stride : seen.strides)
    if (stride >= round && stride % round == 0) stride = stride / axis.extent * held;
  seen.offset = operand.offset / round * inside * held + operand.offset % round;
  return seen;
}

std::optional<Operand> in_whole(const Operand& operand, const Position& position,
                                const Slices& part) {
  Operand seen = operand;
  std::int64_t& indices = seen.shape[position.dim];
  const std::int64_t stride = operand.strides[position.dim], extent = position.extent;
  if (stride != 0 && (indices % extent != 0 || indices / extent != position.inner))
    return std::nullopt;
  const Slices slices = clipped(part, extent);
  indices = indices / extent * slices.count;
  seen.offset += slices.first * position.inner * stride;
  return seen;
}

}  // namespace lowtide::dimensions

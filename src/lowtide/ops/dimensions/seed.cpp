// A tensor has a shape; how that lies in its storage says whoever makes or reads all of it.
#include "lowtide/ops/dimensions/seed.h"

#include <algorithm>
#include <string>
#include <variant>

#include "lowtide/base/error.h"

namespace lowtide::dimensions {

Operand layout_of(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  const auto is_it = [&](const Operand& part) {
    return part.tensor == id && part.shape == tensor.shape && part.offset == 0;
  };
  const auto find = [&](const std::vector<Operand>& list) -> const Operand* {
    const auto found = std::ranges::find_if(list, is_it);
    return found == list.end() ? nullptr : &*found;
  };
  if (!graph.is_input(id))
    if (const Operand* made = find(graph.op(graph.producer(id)).results)) return *made;
  for (const OpId op : graph.consumers(id))
    if (const Operand* read = find(graph.op(op).operands)) return *read;
  Operand plain;
  plain.tensor = id;
  plain.shape = tensor.shape;
  plain.dtype = tensor.dtype;
  plain.strides.assign(plain.shape.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = plain.shape.size(); d-- > 0;) {
    plain.strides[d] = stride;
    if (__builtin_mul_overflow(stride, plain.shape[d], &stride)) stride = 0;
  }
  return plain;
}

namespace {

// Or why there is none.
std::variant<Axis, std::string> look_for_axis(const Graph& graph, const Seed& seed) {
  const Tensor& tensor = graph.tensor(seed.tensor);
  const std::string number = std::to_string(seed.dim);
  if (tensor.shape.empty())
    return "has no dimensions: its \"shape\" is empty, or the graph does not say it";
  const auto rank = std::ssize(tensor.shape);
  if (seed.dim < 0 || seed.dim >= rank)
    return "has no dimension " + number + "; it has " + std::to_string(rank) + ", counted from 0";
  const auto dim = static_cast<std::size_t>(seed.dim);
  if (tensor.shape[dim] < 2)
    return "has " + std::to_string(tensor.shape[dim]) + " along dimension " + number +
           "; an axis has two slices or more";
  Operand layout = layout_of(graph, seed.tensor);
  layout.argument = tensor.name;
  const auto axis = place(layout, {dim, 1, tensor.shape[dim]}, graph.bytes(seed.tensor));
  if (const auto* misfit = std::get_if<Misfit>(&axis))
    return "dimension " + number + " cannot be followed: the op " + misfit->reason;
  const auto& found = std::get<std::optional<Axis>>(axis);
  if (!found) return "repeats itself along dimension " + number;
  return *found;
}

}  // namespace

Axis axis_of(const Graph& graph, const Seed& seed) {
  const auto found = look_for_axis(graph, seed);
  if (const auto* reason = std::get_if<std::string>(&found))
    throw InputError(graph.label(seed.tensor), *reason);
  return std::get<Axis>(found);
}

std::optional<Axis> find_axis(const Graph& graph, const Seed& seed) {
  const auto found = look_for_axis(graph, seed);
  const Axis* axis = std::get_if<Axis>(&found);
  return axis == nullptr ? std::nullopt : std::optional(*axis);
}

}  // namespace lowtide::dimensions

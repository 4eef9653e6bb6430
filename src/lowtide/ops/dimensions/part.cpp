// Literals of an op that say how large a result or an operand is, and so are others in a part; and
// what has to be there before the parts.
#include <algorithm>
#include <array>
#include <string_view>

#include "lowtide/ops/dimensions/follow.h"
#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

// Lists of the extents of the first result.
constexpr std::array<std::string_view, 3> kExtentsMade = {"size", "input_sizes", "input_size"};

struct Part {
  const Op& op;
  const Carry& carry;
  const Slices& slices;

  // Of so many indices, which this view sees.
  std::int64_t scaled(std::int64_t indices, const View& view) const {
    const std::int64_t extent = view.position->extent;
    return indices / extent * clipped(slices, extent).count;
  }

  // The entry of a list that stands for a result's split dimension.
  void shrink(Literal& value, Item result, std::size_t entry) const {
    auto* list = std::get_if<Literal::List>(&value.value);
    if (list == nullptr || !result || entry >= list->size()) return;
    const View& view = carry.results[*result];
    auto* number = std::get_if<std::int64_t>(&(*list)[entry].value);
    if (number == nullptr || !view.position) return;
    if (*number == op.results[*result].shape[view.position->dim]) *number = scaled(*number, view);
  }

  // Where the slice ends that a crop's gradient is put into: behind all of it.
  void end(Literal& value, const OpView& seen) const {
    auto* number = std::get_if<std::int64_t>(&value.value);
    const Item gradient = seen.operand("grad_output");
    if (number == nullptr || !gradient) return;
    const View& view = carry.operands[*gradient];
    const Extents& extents = seen.extents(gradient);
    const auto dim = wrapped(seen.integer("dim").value_or(0), std::ssize(extents));
    if (view.position && dim && view.position->dim == static_cast<std::size_t>(*dim))
      *number = scaled(extents[view.position->dim], view);
  }
};

}  // namespace

std::vector<Argument> part_arguments(const Op& op, const Carry& carry, const Slices& slices) {
  std::vector<Argument> arguments = op.arguments;
  if (carry.before || carry.extent == 0) return arguments;
  const OpView seen(op);
  const Part part{op, carry, slices};
  const auto at = [&](Item result) {
    return result && carry.results[*result].position ? carry.results[*result].position->dim : 0;
  };
  const bool first_is_split = !carry.results.empty() && carry.results[0].state == State::split;
  for (Argument& argument : arguments) {
    if (std::ranges::find(kExtentsMade, argument.name) != kExtentsMade.end()) {
      if (first_is_split) part.shrink(argument.value, 0, at(0));
    } else if (argument.name == "bias_sizes") {
      const Item bias = seen.result(2);
      if (bias && carry.results[*bias].state == State::split) part.shrink(argument.value, bias, 0);
    } else if (argument.name == "repeats") {
      const bool from_operand = std::ranges::any_of(
          carry.operands, [](const View& view) { return view.position.has_value(); });
      auto* list = std::get_if<Literal::List>(&argument.value.value);
      if (first_is_split && !from_operand && list != nullptr && at(0) < list->size()) {
        auto* number = std::get_if<std::int64_t>(&(*list)[at(0)].value);
        if (number != nullptr) *number = part.scaled(*number, carry.results[0]);
      }
    } else if (argument.name == "N") {
      // Of a group norm: how many images.
      const Item input = seen.operand("input");
      auto* number = std::get_if<std::int64_t>(&argument.value.value);
      if (input && number != nullptr && carry.operands[*input].position &&
          carry.operands[*input].position->dim == 0)
        *number = part.scaled(*number, carry.operands[*input]);
    } else if (argument.name == "end" && op.kind == "aten.slice_backward") {
      part.end(argument.value, seen);
    } else if (argument.name == "reduction" && carry.weight == Weight::total) {
      argument.value = Literal{std::int64_t{2}};
    }
  }
  return arguments;
}

bool decides_before(const Op& op, const Carry& carry, std::size_t operand) {
  if (carry.before || std::ranges::none_of(carry.results, &View::before)) return false;
  const std::string_view dtype = op.operands[operand].dtype;
  return carry.operands[operand].state != State::split || dtype.starts_with('i') ||
         dtype.starts_with('u') || dtype.starts_with("bool");
}

}  // namespace lowtide::dimensions

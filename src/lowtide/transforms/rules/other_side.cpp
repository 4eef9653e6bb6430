// other_side: the backward of an activation reads its output instead of its input, or the reverse.
//
// Pattern: threshold_backward of relu, hardtanh_backward (relu6) or leaky_relu_backward with a
// positive slope. They only compare `self` with thresholds, and input and output compare alike.
// Replacement: the same op reads the other of the two. If one of them is held for the next layer's
// backward anyway, the other can be freed.
// Loses: if nothing else holds the tensor that is read after the substitution.
// Bits: none changes, also for infinities and NaNs, which compare alike.
#include <algorithm>

#include "lowtide/transforms/rules/rewriting.h"
#include "lowtide/transforms/rules/table.h"

namespace lowtide {

namespace {

constexpr std::array<std::string_view, 3> kBackwards = {
    "aten.threshold_backward", "aten.hardtanh_backward", "aten.leaky_relu_backward"};

const Literal* literal_of(const Op& op, std::string_view name) {
  const auto found = std::ranges::find(op.arguments, name, &Argument::name);
  return found == op.arguments.end() ? nullptr : &found->value;
}

std::optional<double> number_of(const Op& op, std::string_view name) {
  const Literal* literal = literal_of(op, name);
  if (!literal) return std::nullopt;
  if (const auto* number = std::get_if<double>(&literal->value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&literal->value))
    return static_cast<double>(*number);
  return std::nullopt;
}

bool is_forward_of(const Op& forward, const Op& backward) {
  const auto same = [&](std::string_view name) {
    const auto one = number_of(forward, name);
    return one && one == number_of(backward, name);
  };
  if (backward.kind == "aten.threshold_backward")
    return forward.kind == "aten.relu" && number_of(backward, "threshold") == 0;
  if (backward.kind == "aten.hardtanh_backward")
    return forward.kind == "aten.hardtanh" && same("min_val") && same("max_val");
  return forward.kind == "aten.leaky_relu" && same("negative_slope") &&
         number_of(backward, "negative_slope").value_or(0) > 0;
}

// The view of the other side of the activation (its input or output) that corresponds to operand
// `self`, and the index of `self` among the operands.
std::optional<std::pair<std::size_t, Operand>> seen_in_other(const Graph& graph, OpId backward) {
  const Op& op = graph.op(backward);
  const auto self = std::ranges::find(op.operands, "self", &Operand::argument);
  if (self == op.operands.end()) return std::nullopt;
  const auto place = static_cast<std::size_t>(self - op.operands.begin());
  const auto through = [&](OpId id, bool to_input) -> std::optional<Operand> {
    const Op& forward = graph.op(id);
    if (!is_forward_of(forward, op) || forward.operands.size() != 1 ||
        forward.results.size() != 1 || !graph.mutates(id).empty())
      return std::nullopt;
    const Operand &in = forward.operands.front(), &out = forward.results.front();
    return to_input ? relaid(*self, out, in) : relaid(*self, in, out);
  };
  if (const OpId maker = graph.producer(self->tensor); maker.valid())
    if (auto found = through(maker, true)) return std::pair(place, *found);
  for (const OpId reader : graph.consumers(self->tensor))
    if (auto found = through(reader, false)) return std::pair(place, *found);
  return std::nullopt;
}

std::vector<std::vector<OpId>> backwards_with_two_sides(const Graph& graph, OpId anchor) {
  if (!seen_in_other(graph, anchor)) return {};
  return {{anchor}};
}

void other_side(Rewriting& rewriting) {
  const OpId backward = rewriting.only_op();
  const auto found = seen_in_other(rewriting.graph(), backward);
  if (!found) rewriting.refuse(backward, "reads neither side of its activation");
  rewriting.reread({backward, found->first}, found->second);
}

}  // namespace

constinit const Rule kOtherSide{.name = "other_side",
                                .exact = true,
                                .anchors = kBackwards,
                                .matches = backwards_with_two_sides,
                                .make = other_side,
                                .looks_back = true};

}  // namespace lowtide

// Kinds that compute every element of their results from the same element of their operands, and
// those that make elements from nothing.
#include <algorithm>
#include <array>

#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

bool adds_up(std::string_view dtype) {
  static constexpr std::array<std::string_view, 8> kNumbers = {"f64", "f32",  "bf16", "f16",
                                                               "c64", "c128", "i64",  "i32"};
  return std::ranges::find(kNumbers, dtype) != kNumbers.end();
}

// The op is linear in these operands, unless one is missing or sums of its number type are not what
// parts would give.
void linear_in(const OpView& op, Rule& rule, std::initializer_list<Item> operands) {
  std::vector<std::size_t> list;
  for (const Item item : operands) {
    if (!item || !adds_up(op.dtype(*item))) return;
    list.push_back(*item);
  }
  for (std::size_t r = 0; r < op.result_count(); ++r)
    if (!adds_up(op.dtype_made(r))) return;
  if (!list.empty()) rule.linear.push_back(std::move(list));
}

void linear(const OpView& op, Rule& rule) {
  elementwise(op, rule);
  linear_in(op, rule, {op.operand("self")});
}

// Both summands are sums still to be made; one that is whole would be added in every part.
void sum_of_two(const OpView& op, Rule& rule) {
  elementwise(op, rule);
  if (op.has("other")) linear_in(op, rule, {op.operand("self"), op.operand("other")});
}

void product(const OpView& op, Rule& rule) {
  elementwise(op, rule);
  linear_in(op, rule, {op.operand("self")});
  linear_in(op, rule, {op.operand("other")});
}

void quotient(const OpView& op, Rule& rule) {
  elementwise(op, rule);
  if (!op.is_given("rounding_mode")) linear_in(op, rule, {op.operand("self")});
}

void dropped(const OpView& op, Rule& rule) {
  elementwise(op, rule);
  linear_in(op, rule, {op.operand("grad_output")});
}

// Parts of a sum may be widened one by one; narrowed, each would be rounded.
void cast(const OpView& op, Rule& rule) {
  elementwise(op, rule);
  const Item self = op.operand("self");
  if (!self || op.result_count() != 1) return;
  const std::string_view from = op.dtype(*self), to = op.dtype_made(0);
  const bool half = from == "bf16" || from == "f16";
  if (from == to || to == "f64" || (half && to == "f32")) linear_in(op, rule, {self});
}

// Extents come from an argument, and nothing is read of an operand.
void fill(const OpView& op, Rule& rule) {
  if (op.result_count() != 1) return;
  for (std::size_t i = 0; i < op.operand_count(); ++i) rule.unread.push_back(i);
  for (std::int64_t d = 0; d < std::ssize(op.extents_made(0)); ++d)
    Draft(op).out(0, d).add_to(rule);
}

// All numbers at once, so that they are those of the whole: an operand would only give extents.
void draw_like(const OpView& op, Rule& rule) {
  fill(op, rule);
  rule.drawn = true;
}

void none(const OpView&, Rule&) {}

// With one probability for all it reads nothing; otherwise its operand says each.
void bernoulli(const OpView& op, Rule& rule) {
  if (op.is_given("p")) draw_like(op, rule);
}

constexpr std::string_view kCounts = "counts along", kDraws = "draws random numbers along";

constexpr std::string_view kElementwise[] = {"abs",
                                             "acos",
                                             "acosh",
                                             "addcdiv",
                                             "addcmul",
                                             "alias",
                                             "angle",
                                             "asin",
                                             "asinh",
                                             "atan",
                                             "atan2",
                                             "atanh",
                                             "bitwise_and",
                                             "bitwise_not",
                                             "bitwise_or",
                                             "bitwise_xor",
                                             "ceil",
                                             "celu",
                                             "clamp",
                                             "clamp_max",
                                             "clamp_min",
                                             "complex",
                                             "copysign",
                                             "cos",
                                             "cosh",
                                             "deg2rad",
                                             "digamma",
                                             "elu",
                                             "elu_backward",
                                             "eq",
                                             "erf",
                                             "erfc",
                                             "erfinv",
                                             "exp",
                                             "exp2",
                                             "expm1",
                                             "float_power",
                                             "floor",
                                             "floor_divide",
                                             "fmax",
                                             "fmin",
                                             "fmod",
                                             "frac",
                                             "ge",
                                             "gelu",
                                             "gelu_backward",
                                             "gt",
                                             "hardshrink",
                                             "hardshrink_backward",
                                             "hardsigmoid",
                                             "hardsigmoid_backward",
                                             "hardswish",
                                             "hardswish_backward",
                                             "hardtanh",
                                             "hardtanh_backward",
                                             "heaviside",
                                             "hypot",
                                             "i0",
                                             "isfinite",
                                             "isinf",
                                             "isnan",
                                             "ldexp",
                                             "le",
                                             "leaky_relu",
                                             "leaky_relu_backward",
                                             "lerp",
                                             "lgamma",
                                             "log",
                                             "log10",
                                             "log1p",
                                             "log2",
                                             "log_sigmoid_backward",
                                             "log_sigmoid_forward",
                                             "logaddexp",
                                             "logaddexp2",
                                             "logical_and",
                                             "logical_not",
                                             "logical_or",
                                             "logical_xor",
                                             "logit",
                                             "logit_backward",
                                             "lt",
                                             "masked_fill",
                                             "maximum",
                                             "minimum",
                                             "mish",
                                             "mish_backward",
                                             "nan_to_num",
                                             "ne",
                                             "polar",
                                             "polygamma",
                                             "pow",
                                             "_prelu_kernel",
                                             "_prelu_kernel_backward",
                                             "rad2deg",
                                             "reciprocal",
                                             "relu",
                                             "relu6",
                                             "remainder",
                                             "round",
                                             "rrelu_with_noise_backward",
                                             "rsqrt",
                                             "rsub",
                                             "selu",
                                             "sgn",
                                             "sigmoid",
                                             "sigmoid_backward",
                                             "sign",
                                             "signbit",
                                             "silu",
                                             "silu_backward",
                                             "sin",
                                             "sinc",
                                             "sinh",
                                             "softplus",
                                             "softplus_backward",
                                             "softshrink",
                                             "softshrink_backward",
                                             "special_entr",
                                             "special_erfcx",
                                             "special_i0e",
                                             "special_i1",
                                             "special_i1e",
                                             "special_log_ndtr",
                                             "special_ndtri",
                                             "special_xlog1py",
                                             "sqrt",
                                             "square",
                                             "tan",
                                             "tanh",
                                             "tanh_backward",
                                             "threshold",
                                             "threshold_backward",
                                             "trunc",
                                             "where",
                                             "xlogy"};

constexpr Entry kOthers[] = {
    {"aten.add", sum_of_two, {}},
    {"aten.sub", sum_of_two, {}},
    {"aten.mul", product, {}},
    {"aten.div", quotient, {}},
    {"aten.neg", linear, {}},
    {"aten.clone", linear, {}},
    {"aten._conj_physical", linear, {}},
    {"aten._to_copy", cast, {}},
    {"aten.copy", elementwise, {}},
    {"aten.native_dropout_backward", dropped, {}},
    {"lowtide.dropout_apply", elementwise, {}},
    {"lowtide.pointwise", elementwise, {}},  // several elementwise operators as one
    {"aten.new_zeros", fill, {}},
    {"aten.new_ones", fill, {}},
    {"aten.new_full", fill, {}},
    {"aten.new_empty", fill, {}},
    {"aten.zeros", fill, {}},
    {"aten.ones", fill, {}},
    {"aten.full", fill, {}},
    {"aten.empty", fill, {}},
    {"aten.scalar_tensor", fill, {}},
    {"aten.zeros_like", elementwise, {}},
    {"aten.ones_like", elementwise, {}},
    {"aten.full_like", elementwise, {}},
    {"aten.empty_like", elementwise, {}},
    {"aten.fill", elementwise, {}},
    {"lowtide.dropout_mask", draw_like, {}},
    {"aten.rand_like", draw_like, {}},
    {"aten.randn_like", draw_like, {}},
    {"aten.randint_like", draw_like, {}},
    {"aten.arange", none, kCounts},
    {"aten.linspace", none, kCounts},
    {"aten.logspace", none, kCounts},
    {"aten.eye", none, kCounts},
    {"aten.rand", none, kDraws},
    {"aten.randn", none, kDraws},
    {"aten.randint", none, kDraws},
    {"aten.randperm", none, kDraws},
    {"aten.normal", none, kDraws},
    {"aten.normal_functional", draw_like, kDraws},
    {"aten.uniform", draw_like, kDraws},
    {"aten.bernoulli", bernoulli, kDraws},
    {"aten.exponential", draw_like, kDraws},
    {"aten.multinomial", none, kDraws},
    {"aten.native_dropout", none, kDraws},
    {"aten.rrelu_with_noise_functional", none, kDraws},
    {"lowtide.random_state", none, kDraws},
};

}  // namespace

void elementwise(const OpView& op, Rule& rule) {
  if (op.result_count() == 0) return;
  const Extents& shape = op.extents_made(0);
  for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
    Draft draft(op);
    draft.out(0, d);
    for (std::size_t i = 0; i < op.operand_count(); ++i)
      draft.in_broadcast(i, d, std::ssize(shape));
    for (std::size_t r = 1; r < op.result_count(); ++r)
      if (op.extents_made(r) == shape) draft.out(r, d);
      // Some devices leave a result empty that others need.
      else if (op.extents_made(r) == Extents{0})
        draft.other(r, Unnamed::same);
    draft.add_to(rule);
  }
}

std::span<const Entry> pointwise_rules() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names;
    for (const std::string_view name : kElementwise) names.push_back("aten." + std::string(name));
    return names;
  }();
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all(std::begin(kOthers), std::end(kOthers));
    for (const std::string& name : kinds) all.push_back({name, elementwise, {}});
    return all;
  }();
  return entries;
}

}  // namespace lowtide::dimensions

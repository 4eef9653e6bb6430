// Kinds that take some dimensions at once and all others index by index: sums and other
// reductions, scans, sorts, softmax, Fourier transforms.
#include <algorithm>

#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

// Which dimensions an argument names, of so many; all of them where it is absent, null or empty.
// Nothing if one does not exist.
std::optional<std::vector<bool>> named_dims(const OpView& op, std::string_view argument,
                                            std::int64_t rank) {
  const auto dims = op.integers(argument);
  std::vector<bool> named(static_cast<std::size_t>(rank), !dims || dims->empty());
  if (dims)
    for (const std::int64_t dim : *dims) {
      const auto at = wrapped(dim, std::max<std::int64_t>(rank, 1));
      if (!at) return std::nullopt;
      if (rank > 0) named[static_cast<std::size_t>(*at)] = true;
    }
  return named;
}

enum class Over { nothing, sum, mean };

// A reduced dimension disappears or keeps one index; the others are dimensions of the results.
void reduce(const OpView& op, Rule& rule, Over over) {
  const Item self = op.operand("self");
  const auto rank = op.rank(self);
  const auto reduced = named_dims(op, "dim", rank);
  if (!self || !reduced) return;
  const bool kept = op.is_true("keepdim");
  std::int64_t at = 0;
  for (std::int64_t d = 0; d < rank; ++d) {
    if (!(*reduced)[static_cast<std::size_t>(d)]) {
      Draft draft(op);
      draft.in(self, d);
      for (std::size_t r = 0; r < op.result_count(); ++r) draft.out(r, at);
      draft.add_to(rule);
      ++at;
      continue;
    }
    if (kept) ++at;
    if (over == Over::nothing) continue;
    Draft(op)
        .in(self, d)
        .others(Unnamed::sum)
        .weight(over == Over::mean ? Weight::share : Weight::one)
        .add_to(rule);
  }
}

void sum(const OpView& op, Rule& rule) {
  reduce(op, rule, Over::sum);
  if (op.has("self") && op.dtype(*op.operand("self")) != "bool")
    rule.linear.push_back({*op.operand("self")});
}

void count(const OpView& op, Rule& rule) { reduce(op, rule, Over::sum); }
void mean(const OpView& op, Rule& rule) { reduce(op, rule, Over::mean); }
void other(const OpView& op, Rule& rule) { reduce(op, rule, Over::nothing); }

// Without "dim" they reduce everything, or compare two tensors.
void extreme(const OpView& op, Rule& rule) {
  if (op.has("other")) return elementwise(op, rule);
  other(op, rule);
}

// Operands and results have the same dimensions; those that the argument names are taken at once.
template <const char* kArgument>
void along(const OpView& op, Rule& rule) {
  if (op.result_count() == 0) return;
  const auto mixed = named_dims(op, kArgument, std::ssize(op.extents_made(0)));
  if (!mixed) return;
  same_dimensions(op, rule, [&](std::int64_t d, std::int64_t) {
    return !(*mixed)[static_cast<std::size_t>(d)];
  });
}

// Extents differ along the mixed dimension, so that only the others are compared.
void last_two(const OpView& op, Rule& rule) {
  same_dimensions(op, rule, [](std::int64_t d, std::int64_t rank) { return d < rank - 2; });
}

void bucketize(const OpView& op, Rule& rule) {
  if (op.result_count() == 0) return;
  for (std::int64_t d = 0; d < std::ssize(op.extents_made(0)); ++d)
    Draft(op).in(op.operand("self"), d).out(0, d).add_to(rule);
}

constexpr char kDim[] = "dim", kDims[] = "dims";
constexpr std::string_view kScans = "accumulates along", kSorts = "sorts along",
                           kNormalizes = "normalizes over", kTransforms = "transforms along";

constexpr Entry kReductionRules[] = {
    {"aten.sum", sum, {}},
    {"aten.nansum", count, {}},
    {"aten.count_nonzero", count, {}},
    {"aten.mean", mean, {}},
    {"aten.amax", other, {}},
    {"aten.amin", other, {}},
    {"aten.max", extreme, {}},
    {"aten.min", extreme, {}},
    {"aten.argmax", other, {}},
    {"aten.argmin", other, {}},
    {"aten.all", other, {}},
    {"aten.any", other, {}},
    {"aten.prod", other, {}},
    {"aten.logsumexp", other, {}},
    {"aten.norm", other, {}},
    {"aten.linalg_vector_norm", other, {}},
    {"aten.std", other, "takes statistics over"},
    {"aten.var", other, "takes statistics over"},
    {"aten.std_mean", other, "takes statistics over"},
    {"aten.var_mean", other, "takes statistics over"},
    {"aten.median", other, kSorts},
    {"aten.nanmedian", other, kSorts},
    {"aten.mode", other, kSorts},
    {"aten.kthvalue", other, kSorts},
    {"aten.topk", along<kDim>, kSorts},
    {"aten.sort", along<kDim>, kSorts},
    {"aten.argsort", along<kDim>, kSorts},
    {"aten.cumsum", along<kDim>, kScans},
    {"aten.cumprod", along<kDim>, kScans},
    {"aten.cummax", along<kDim>, kScans},
    {"aten.cummin", along<kDim>, kScans},
    {"aten.logcumsumexp", along<kDim>, kScans},
    {"aten._softmax", along<kDim>, kNormalizes},
    {"aten._log_softmax", along<kDim>, kNormalizes},
    {"aten._safe_softmax", along<kDim>, kNormalizes},
    {"aten._softmax_backward_data", along<kDim>, kNormalizes},
    {"aten._log_softmax_backward_data", along<kDim>, kNormalizes},
    {"aten.flip", along<kDims>, "reverses"},
    {"aten.roll", along<kDims>, "rotates"},
    {"aten.glu", along<kDim>, {}},
    {"aten.glu_backward", along<kDim>, {}},
    {"aten._fft_r2c", along<kDim>, kTransforms},
    {"aten._fft_c2c", along<kDim>, kTransforms},
    {"aten._fft_c2r", along<kDim>, kTransforms},
    {"aten.tril", last_two, {}},
    {"aten.triu", last_two, {}},
    {"aten.bucketize", bucketize, {}},
};

}  // namespace

std::span<const Entry> reduction_rules() { return kReductionRules; }

}  // namespace lowtide::dimensions

// floor(share x peak), exactly.
#include "lowtide/sim/budget.h"

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"

namespace lowtide {

Bytes resolve_budget(const BudgetSpec& spec, const Graph& graph) {
  if (spec.kind == BudgetSpec::Kind::bytes) return spec.bytes;
  const Bytes peak = own_peak(graph);
  const Bytes fixed = spec.kind == BudgetSpec::Kind::share_of_activations
                          ? graph.resident() + graph.input_bytes()
                          : Bytes(0);
  try {
    const Bytes share(
        checked_mul_div((peak - fixed).count(), spec.numerator, spec.denominator, Rounding::floor));
    return checked_add(fixed, share);
  } catch (const OverflowError&) {
    throw InputError("budget", "the share of the peak is 2^63 bytes or more");
  }
}

}  // namespace lowtide

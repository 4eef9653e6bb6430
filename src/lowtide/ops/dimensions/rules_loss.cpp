// Losses and their backward. "reduction": 0 keeps every element, 1 averages, 2 adds up.
#include <algorithm>

#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

constexpr std::int64_t kNone = 0, kMean = 1;

// Self is [N, C], or [N, C, ...] with a target [N, ...]. A mean is over the targets that count, by
// their classes' weights: how many these are is known before the parts.
void nll_forward(const OpView& op, Rule& rule) {
  const Item self = op.operand("self"), target = op.operand("target");
  const Item out = op.result(0, "output"), total = op.result(1, "total_weight");
  const auto reduction = op.integer("reduction");
  if (!reduction || !out || op.rank(self) != op.rank(target) + 1 || op.rank(self) < 2) return;
  for (std::int64_t d = 0; d < op.rank(target); ++d) {
    Draft draft(op);
    draft.in(self, d == 0 ? 0 : d + 1).in(target, d);
    if (*reduction == kNone)
      draft.out(out, d).other(total, Unnamed::same);
    else  // the backward reads the count of all
      draft.other(out, Unnamed::sum).other(total, Unnamed::before);
    if (*reduction == kMean) {
      if (!total) return;
      draft.weight(Weight::total);
    }
    draft.add_to(rule);
  }
}

void nll_backward(const OpView& op, Rule& rule) {
  const Item self = op.operand("self"), target = op.operand("target");
  const auto reduction = op.integer("reduction");
  if (!reduction || op.rank(self) != op.rank(target) + 1 || op.rank(self) < 2) return;
  for (std::int64_t d = 0; d < op.rank(target); ++d) {
    const std::int64_t at = d == 0 ? 0 : d + 1;
    Draft draft(op);
    if (*reduction == kNone) draft.in(op.operand("grad_output"), d);
    draft.in(self, at).in(target, d).out(0, at).add_to(rule);
  }
}

// Extents of what two operands are broadcast to.
Extents broadcast(const Extents& a, const Extents& b) {
  Extents both(std::max(a.size(), b.size()), 1);
  for (const Extents* one : {&a, &b})
    for (std::size_t i = 0; i < one->size(); ++i) {
      std::int64_t& extent = both[both.size() - one->size() + i];
      if ((*one)[i] != 1) extent = (*one)[i];
    }
  return both;
}

void elementwise_loss(const OpView& op, Rule& rule) {
  const auto reduction = op.integer("reduction");
  if (!reduction) return;
  if (*reduction == kNone) return elementwise(op, rule);
  const auto rank =
      std::ssize(broadcast(op.extents(op.operand("self")), op.extents(op.operand("target"))));
  for (std::int64_t d = 0; d < rank; ++d) {
    Draft draft(op);
    for (std::size_t i = 0; i < op.operand_count(); ++i) draft.in_broadcast(i, d, rank);
    draft.others(Unnamed::sum)
        .weight(*reduction == kMean ? Weight::share : Weight::one)
        .add_to(rule);
  }
}

// The gradient of a mean divides by how many elements there are.
void elementwise_loss_backward(const OpView& op, Rule& rule) {
  const auto reduction = op.integer("reduction");
  if (!reduction) return;
  elementwise(op, rule);
  if (*reduction == kMean)
    for (Letter& letter : rule.letters) letter.weight = Weight::share;
}

constexpr Entry kLossRules[] = {
    {"aten.nll_loss_forward", nll_forward, {}},
    {"aten.nll_loss2d_forward", nll_forward, {}},
    {"aten.nll_loss_backward", nll_backward, {}},
    {"aten.nll_loss2d_backward", nll_backward, {}},
    {"aten.mse_loss", elementwise_loss, {}},
    {"aten.mse_loss_backward", elementwise_loss_backward, {}},
    {"aten.smooth_l1_loss", elementwise_loss, {}},
    {"aten.smooth_l1_loss_backward", elementwise_loss_backward, {}},
    {"aten.huber_loss", elementwise_loss, {}},
    {"aten.huber_loss_backward", elementwise_loss_backward, {}},
    {"aten.binary_cross_entropy", elementwise_loss, {}},
    {"aten.binary_cross_entropy_backward", elementwise_loss_backward, {}},
    {"aten.binary_cross_entropy_with_logits", elementwise_loss, {}},
    {"aten.soft_margin_loss", elementwise_loss, {}},
    {"aten.soft_margin_loss_backward", elementwise_loss_backward, {}},
};

}  // namespace

std::span<const Entry> loss_rules() { return kLossRules; }

}  // namespace lowtide::dimensions

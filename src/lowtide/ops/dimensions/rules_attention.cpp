// Scaled dot products, by the names of their kernels: batch, heads and, without a causal mask,
// queries. Operands are [batch, heads, positions, extent].
#include <initializer_list>

#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

Item mask_of(const OpView& op) {
  const Item mask = op.operand("attn_mask");
  return mask ? mask : op.operand("attn_bias");
}

bool draws(const OpView& op, Rule& rule) {
  if (op.is_number("dropout_p", 0)) return false;
  rule.reason = "draws random numbers along";
  return true;
}

Item sums_of(const OpView& op) {
  const Item sums = op.result(1, "logsumexp");
  return sums ? sums : op.result(1, "log_sumexp");
}

bool has_four(const OpView& op, std::initializer_list<Item> items) {
  for (const Item item : items)
    if (op.rank(item) != 4) return false;
  return true;
}

bool as_many_heads(const OpView& op, Item query, Item key, Item value) {
  const Extents &q = op.extents(query), &k = op.extents(key), &v = op.extents(value);
  return q[1] == k[1] && q[1] == v[1];
}

void attention(const OpView& op, Rule& rule) {
  const Item query = op.operand("query"), key = op.operand("key"), value = op.operand("value");
  const Item mask = mask_of(op), out = op.result(0, "output"), sums = sums_of(op);
  if (draws(op, rule) || !has_four(op, {query, key, value}) || !out) return;
  for (const std::int64_t d : {0, 1}) {
    if (d == 1 && !as_many_heads(op, query, key, value)) continue;
    Draft(op)
        .in(query, d)
        .in(key, d)
        .in(value, d)
        .in_broadcast(mask, d, 4)
        .out(out, d)
        .out(sums, d)
        .others(Unnamed::same)  // seeds, which nobody draws from
        .add_to(rule);
  }
  if (!op.is_false("is_causal")) return;
  Draft(op)
      .in(query, 2)
      .in_broadcast(mask, 2, 4)
      .out(out, 2)
      .out(sums, 2)
      .others(Unnamed::same)
      .add_to(rule);
}

void attention_backward(const OpView& op, Rule& rule) {
  const Item query = op.operand("query"), key = op.operand("key"), value = op.operand("value");
  const Item first = op.operand("grad_out"), gradient = first ? first : op.operand("grad_out_");
  const Item made = op.operand("out"), sums = op.operand("logsumexp"), mask = mask_of(op);
  const Item to_query = op.result(0, "grad_query"), to_key = op.result(1, "grad_key"),
             to_value = op.result(2, "grad_value"), to_mask = op.result(3, "grad_attn_bias");
  if (draws(op, rule) || !has_four(op, {query, key, value, gradient, made})) return;
  for (const std::int64_t d : {0, 1}) {
    if (d == 1 && !as_many_heads(op, query, key, value)) continue;
    Draft draft(op);
    draft.in(gradient, d).in(query, d).in(key, d).in(value, d).in(made, d).in(sums, d);
    draft.in_broadcast(mask, d, 4).out(to_query, d).out(to_key, d).out(to_value, d);
    if (to_mask) draft.out(to_mask, d);
    draft.add_to(rule);
  }
  if (!op.is_false("is_causal") || to_mask) return;
  Draft(op)
      .in(gradient, 2)
      .in(query, 2)
      .in(made, 2)
      .in(sums, 2)
      .in_broadcast(mask, 2, 4)
      .out(to_query, 2)
      .other(to_key, Unnamed::sum)
      .other(to_value, Unnamed::sum)
      .add_to(rule);
}

constexpr Entry kAttentionRules[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu", attention, {}},
    {"aten._scaled_dot_product_flash_attention", attention, {}},
    {"aten._scaled_dot_product_efficient_attention", attention, {}},
    {"aten._scaled_dot_product_cudnn_attention", attention, {}},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward", attention_backward, {}},
    {"aten._scaled_dot_product_flash_attention_backward", attention_backward, {}},
    {"aten._scaled_dot_product_efficient_attention_backward", attention_backward, {}},
    {"aten._scaled_dot_product_cudnn_attention_backward", attention_backward, {}},
};

}  // namespace

std::span<const Entry> attention_rules() { return kAttentionRules; }

}  // namespace lowtide::dimensions

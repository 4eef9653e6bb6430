// Products of matrices: rows, columns, batches, and the dimension that is summed.
#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

// A sum over parts goes through one factor.
void linear_factors(const OpView& op, Rule& rule, Item left, Item right) {
  if (!left || !right || op.result_count() != 1) return;
  rule.linear.push_back({*left});
  rule.linear.push_back({*right});
}

void mm(const OpView& op, Rule& rule) {
  const Item left = op.operand("self"), right = op.operand("mat2");
  Draft(op).in(left, 0).out(0, 0).add_to(rule);
  Draft(op).in(right, 1).out(0, 1).add_to(rule);
  Draft(op).in(left, 1).in(right, 0).others(Unnamed::sum).add_to(rule);
  linear_factors(op, rule, left, right);
}

void bmm(const OpView& op, Rule& rule) {
  const Item left = op.operand("self"), right = op.operand("mat2");
  Draft(op).in(left, 0).in(right, 0).out(0, 0).add_to(rule);
  Draft(op).in(left, 1).out(0, 1).add_to(rule);
  Draft(op).in(right, 2).out(0, 2).add_to(rule);
  Draft(op).in(left, 2).in(right, 1).others(Unnamed::sum).add_to(rule);
  linear_factors(op, rule, left, right);
}

// In a sum over parts, the added operand would be added once for each part. So it must not count:
// beta is 0, or nothing is summed.
void addmm(const OpView& op, Rule& rule) {
  const Item added = op.operand("self"), left = op.operand("mat1"), right = op.operand("mat2");
  Draft(op).in_broadcast(added, 0, 2).in(left, 0).out(0, 0).add_to(rule);
  Draft(op).in_broadcast(added, 1, 2).in(right, 1).out(0, 1).add_to(rule);
  if (op.is_number("beta", 0)) Draft(op).in(left, 1).in(right, 0).others(Unnamed::sum).add_to(rule);
}

void baddbmm(const OpView& op, Rule& rule) {
  const Item added = op.operand("self"), left = op.operand("batch1"), right = op.operand("batch2");
  Draft(op).in_broadcast(added, 0, 3).in(left, 0).in(right, 0).out(0, 0).add_to(rule);
  Draft(op).in_broadcast(added, 1, 3).in(left, 1).out(0, 1).add_to(rule);
  Draft(op).in_broadcast(added, 2, 3).in(right, 2).out(0, 2).add_to(rule);
  if (op.is_number("beta", 0)) Draft(op).in(left, 2).in(right, 1).others(Unnamed::sum).add_to(rule);
}

void mv(const OpView& op, Rule& rule) {
  const Item matrix = op.operand("self"), vector = op.operand("vec");
  Draft(op).in(matrix, 0).out(0, 0).add_to(rule);
  Draft(op).in(matrix, 1).in(vector, 0).others(Unnamed::sum).add_to(rule);
}

void addmv(const OpView& op, Rule& rule) {
  const Item added = op.operand("self"), matrix = op.operand("mat");
  Draft(op).in_broadcast(added, 0, 1).in(matrix, 0).out(0, 0).add_to(rule);
}

void dot(const OpView& op, Rule& rule) {
  Draft(op).in(op.operand("self"), 0).in(op.operand("tensor"), 0).others(Unnamed::sum).add_to(rule);
}

// Distances between the rows of two matrices, or of batches of them.
void cdist(const OpView& op, Rule& rule) {
  const Item left = op.operand("x1"), right = op.operand("x2");
  const auto rank = op.rank(left);
  if (op.rank(right) != rank || std::ssize(op.extents_made(0)) != rank) return;
  for (std::int64_t d = 0; d < rank - 2; ++d)
    Draft(op).in(left, d).in(right, d).out(0, d).add_to(rule);
  Draft(op).in(left, -2).out(0, -2).add_to(rule);
  Draft(op).in(right, -2).out(0, -1).add_to(rule);
}

constexpr Entry kMatrixRules[] = {
    {"aten.mm", mm, {}},       {"aten.bmm", bmm, {}},
    {"aten.addmm", addmm, {}}, {"aten.baddbmm", baddbmm, {}},
    {"aten.mv", mv, {}},       {"aten.addmv", addmv, {}},
    {"aten.dot", dot, {}},     {"aten._cdist_forward", cdist, {}},
};

}  // namespace

std::span<const Entry> matrix_rules() { return kMatrixRules; }

}  // namespace lowtide::dimensions

// Products of two matrices in the form that the rules use. Private to the folder.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "lowtide/transforms/rules/rewriting.h"

namespace lowtide {

inline constexpr std::array<std::string_view, 2> kProductKinds = {"aten.mm", "aten.addmm"};

bool is_product(const Op& op);

// left [r, k] times right [k, n] (plus `added`).
struct Product {
  OpId op;
  const Operand *left, *right;
  const Operand* added;  // null for mm
  const Operand* result;

  std::int64_t rows() const { return left->shape[0]; }
  std::int64_t inner() const { return left->shape[1]; }
  std::int64_t columns() const { return right->shape[1]; }
};

// Refuses other kinds, number types that differ, and shapes that do not fit.
Product product_of(const Rewriting& rewriting, OpId op);

// Columns of a matrix, or elements of a row: `count` from `first` on.
Operand columns_of(const Operand& matrix, std::int64_t first, std::int64_t count);

// A product of other columns, with kind, phase, origin and literals of `like`.
Op product_like(const Graph& graph, OpId like, std::string name, const Operand& right,
                const Operand* added, const Operand& result);

}  // namespace lowtide

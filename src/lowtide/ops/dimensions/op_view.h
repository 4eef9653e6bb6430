// Access for rules to an op's operands and arguments, safe if these do not fit its kind. Private to
// the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/letter.h"

namespace lowtide::dimensions {

using Item = std::optional<std::size_t>;
using Extents = std::vector<std::int64_t>;

class OpView {
 public:
  explicit OpView(const Op& op) : op_(op) {}

  std::size_t operand_count() const { return op_.operands.size(); }
  std::size_t result_count() const { return op_.results.size(); }
  // The operand of that argument, at that index if it is a list; empty if there is none.
  Item operand(std::string_view argument, std::int64_t index = -1) const;
  bool has(std::string_view argument) const { return operand(argument).has_value(); }
  // The result of that number or name; empty if the op does not make it.
  Item result(std::int64_t number, std::string_view name = {}) const;

  // {} if there is none.
  const Extents& extents(Item operand) const;
  const Extents& extents_made(Item result) const;
  std::int64_t rank(Item operand) const { return std::ssize(extents(operand)); }
  std::string_view dtype(std::size_t operand) const { return op_.operands[operand].dtype; }
  std::string_view dtype_made(std::size_t result) const { return op_.results[result].dtype; }

  // Literals: empty if absent, null, or of another type.
  std::optional<std::int64_t> integer(std::string_view argument) const;
  bool is_true(std::string_view argument) const;
  bool is_false(std::string_view argument) const;
  bool is_number(std::string_view argument, double value) const;
  // A list, or one integer as a list of one; empty for null and for other types.
  std::optional<Extents> integers(std::string_view argument) const;
  std::optional<std::string_view> text(std::string_view argument) const;
  bool is_given(std::string_view argument) const;  // present and not null

  const Op& op() const { return op_; }

 private:
  const Literal* literal(std::string_view argument) const;

  const Op& op_;
};

// A dimension, counted from the end if negative; empty if out of range.
std::optional<std::int64_t> wrapped(std::int64_t dim, std::int64_t rank);

// Builds one letter. A missing dimension, or one of another extent, makes the letter void.
class Draft {
 public:
  explicit Draft(const OpView& op) : op_(op) {}

  Draft& in(Item operand, std::int64_t dim);
  // Ignored if the op has no such operand.
  Draft& in_any(Item operand, std::int64_t dim);
  // For an operand that is broadcast to `rank` dimensions: ignored if the operand has at most one
  // index there.
  Draft& in_broadcast(Item operand, std::int64_t dim, std::int64_t rank);
  // Ignored if the op does not make the result.
  Draft& out(Item result, std::int64_t dim);
  // The meaning of results that no `out` names; without this call there must be none.
  Draft& others(Unnamed what);
  Draft& other(Item result, Unnamed what);
  Draft& weight(Weight weight);
  // Extents may differ: the dimensions are concatenated.
  Draft& joined();
  // Extents may differ as those of an axis and a crop: the shorter has the first indices of the
  // longer.
  Draft& cropped();
  Draft& block(std::int64_t indices);

  void add_to(Rule& rule);

 private:
  void along(std::vector<Along>& list, Item item, std::int64_t dim, const Extents& extents);

  const OpView& op_;
  Letter letter_;
  std::vector<std::pair<std::size_t, Unnamed>> each_;
  std::optional<Unnamed> others_;
  std::int64_t extent_ = -1, shortest_ = -1;  // of the dimensions so far
  bool good_ = true, joined_ = false;
};

// One line of the table.
struct Entry {
  std::string_view kind;
  void (*fill)(const OpView& op, Rule& rule);
  std::string_view reason;  // see Rule::reason
};

std::span<const Entry> pointwise_rules();
std::span<const Entry> matrix_rules();
std::span<const Entry> reduction_rules();
std::span<const Entry> layer_rules();
std::span<const Entry> attention_rules();
std::span<const Entry> loss_rules();
std::span<const Entry> index_rules();
std::span<const Entry> cluster_rules();

// Letters of the dimensions of the first result; operands are broadcast to it.
void elementwise(const OpView& op, Rule& rule);
// Dimension d of every operand and result is one letter, for each d that `allowed` permits.
template <class Allowed>
void same_dimensions(const OpView& op, Rule& rule, Allowed allowed) {
  if (op.result_count() == 0) return;
  const auto rank = std::ssize(op.extents_made(0));
  for (std::int64_t d = 0; d < rank; ++d) {
    if (!allowed(d, rank)) continue;
    Draft draft(op);
    for (std::size_t i = 0; i < op.operand_count(); ++i) draft.in(i, d);
    for (std::size_t r = 0; r < op.result_count(); ++r) draft.out(r, d);
    draft.add_to(rule);
  }
}

}  // namespace lowtide::dimensions

// A model for constraint programming, with CP-SAT's constraints; encoded as it is added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/engines/wire.h"

namespace lowtide::engines {

// An integer variable, by index. A variable with a domain within {0, 1} is a literal too, and so is
// its negation.
using CpVar = std::int32_t;
inline constexpr CpVar cp_not(CpVar literal) { return -literal - 1; }

// coefficient x var + offset; only the offset without a variable.
struct CpExpr {
  static constexpr CpVar kNone = INT32_MIN;
  CpVar var = kNone;
  std::int64_t coefficient = 1, offset = 0;

  CpExpr(std::int64_t value) : offset(value) {}
  static CpExpr of(CpVar v, std::int64_t c = 1, std::int64_t off = 0) {
    CpExpr expr(off);
    expr.var = v;
    expr.coefficient = c;
    return expr;
  }
};

struct CpTerm {
  CpVar var;
  std::int64_t coefficient;
};

class CpModel {
 public:
  using Literals = std::span<const CpVar>;
  struct Range {
    std::int64_t low, high;
  };

  CpVar add_var(std::int64_t low, std::int64_t high);
  CpVar add_var(std::span<const std::int64_t> values);  // ascending, at least one
  CpVar add_bool() { return add_var(0, 1); }

  // Each holds if all of `enforce` are true. Negated literals are not allowed in terms.
  void add_linear(std::span<const CpTerm> terms, Range range, Literals enforce = {});
  void add_linear(std::initializer_list<CpTerm> terms, Range range, Literals enforce = {}) {
    add_linear(std::span(terms.begin(), terms.size()), range, enforce);
  }
  void add_or(Literals literals, Literals enforce = {});
  void add_and(Literals literals, Literals enforce = {});
  void add_exactly_one(Literals literals);
  void add_at_most_one(Literals literals);
  void add_all_different(std::span<const CpExpr> exprs);
  // end = start + size. Returns the index of the constraint; the interval exists only if all of
  // `enforce` are true.
  std::int64_t add_interval(const CpExpr& start, const CpExpr& size, const CpExpr& end,
                            Literals enforce = {});
  // At no point do the demands of the existing intervals sum to more than the capacity.
  void add_cumulative(std::span<const std::int64_t> intervals, std::span<const CpExpr> demands,
                      const CpExpr& capacity);
  // The sum of the changes of all active times up to any point, that point included, is at least
  // `low`.
  void add_reservoir(std::span<const CpExpr> times, std::span<const std::int64_t> changes,
                     Literals active, std::int64_t low);

  void minimise(std::span<const CpTerm> terms, std::int64_t offset = 0);
  void add_hint(CpVar var, std::int64_t value);

  std::size_t var_count() const { return vars_; }
  // A CpModelProto without its hint; and its PartialVariableAssignment.
  std::string encode() const;
  std::string encode_hint() const;

 private:
  std::int64_t add(int kind, const WireWriter& constraint, Literals enforce);

  std::size_t vars_ = 0, constraints_ = 0;
  WireWriter body_, objective_;
  std::vector<std::int64_t> hint_vars_, hint_values_;
};

}  // namespace lowtide::engines

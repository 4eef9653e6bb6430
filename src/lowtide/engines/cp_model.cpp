// Field numbers of cp_model.proto of OR-Tools 9.x.
#include "lowtide/engines/cp_model.h"

#include "lowtide/base/error.h"

namespace lowtide::engines {

namespace {

enum ModelField { kVariables = 2, kConstraints = 3, kObjective = 4 };
enum ConstraintField {
  kEnforcement = 2,
  kBoolOr = 3,
  kBoolAnd = 4,
  kLinear = 12,
  kAllDiff = 13,
  kInterval = 19,
  kCumulative = 22,
  kReservoir = 24,
  kAtMostOne = 26,
  kExactlyOne = 29
};

std::vector<std::int64_t> wide(std::span<const CpVar> literals) {
  return {literals.begin(), literals.end()};
}

WireWriter written(const CpExpr& expr) {
  WireWriter out;
  if (expr.var != CpExpr::kNone) {
    const std::int64_t var = expr.var;
    out.numbers(1, {&var, 1}).numbers(2, {&expr.coefficient, 1});
  }
  if (expr.offset != 0) out.number(3, expr.offset);
  return out;
}

}  // namespace

CpVar CpModel::add_var(std::int64_t low, std::int64_t high) {
  const std::int64_t domain[] = {low, high};
  body_.message(kVariables, WireWriter().numbers(2, domain));
  return static_cast<CpVar>(vars_++);
}

CpVar CpModel::add_var(std::span<const std::int64_t> values) {
  check(!values.empty(), "a variable needs a value");
  std::vector<std::int64_t> domain;
  for (const std::int64_t value : values) {
    if (!domain.empty() && domain.back() + 1 >= value) {
      domain.back() = value;
    } else {
      domain.push_back(value);
      domain.push_back(value);
    }
  }
  body_.message(kVariables, WireWriter().numbers(2, domain));
  return static_cast<CpVar>(vars_++);
}

std::int64_t CpModel::add(int kind, const WireWriter& constraint, Literals enforce) {
  WireWriter out;
  if (!enforce.empty()) out.numbers(kEnforcement, wide(enforce));
  body_.message(kConstraints, out.message(kind, constraint));
  return static_cast<std::int64_t>(constraints_++);
}

void CpModel::add_linear(std::span<const CpTerm> terms, Range range, Literals enforce) {
  std::vector<std::int64_t> vars, coefficients;
  for (const CpTerm& term : terms) {
    vars.push_back(term.var);
    coefficients.push_back(term.coefficient);
  }
  const std::int64_t domain[] = {range.low, range.high};
  add(kLinear, WireWriter().numbers(1, vars).numbers(2, coefficients).numbers(3, domain), enforce);
}

void CpModel::add_or(Literals literals, Literals enforce) {
  add(kBoolOr, WireWriter().numbers(1, wide(literals)), enforce);
}

void CpModel::add_and(Literals literals, Literals enforce) {
  add(kBoolAnd, WireWriter().numbers(1, wide(literals)), enforce);
}

void CpModel::add_exactly_one(Literals literals) {
  add(kExactlyOne, WireWriter().numbers(1, wide(literals)), {});
}

void CpModel::add_at_most_one(Literals literals) {
  add(kAtMostOne, WireWriter().numbers(1, wide(literals)), {});
}

void CpModel::add_all_different(std::span<const CpExpr> exprs) {
  WireWriter out;
  for (const CpExpr& expr : exprs) out.message(1, written(expr));
  add(kAllDiff, out, {});
}

std::int64_t CpModel::add_interval(const CpExpr& start, const CpExpr& size, const CpExpr& end,
                                   Literals enforce) {
  return add(
      kInterval,
      WireWriter().message(4, written(start)).message(5, written(end)).message(6, written(size)),
      enforce);
}

void CpModel::add_cumulative(std::span<const std::int64_t> intervals,
                             std::span<const CpExpr> demands, const CpExpr& capacity) {
  WireWriter out;
  out.message(1, written(capacity)).numbers(2, intervals);
  for (const CpExpr& demand : demands) out.message(3, written(demand));
  add(kCumulative, out, {});
}

void CpModel::add_reservoir(std::span<const CpExpr> times, std::span<const std::int64_t> changes,
                            Literals active, std::int64_t low) {
  WireWriter out;
  out.number(1, low).number(2, INT64_MAX / 4);
  for (const CpExpr& time : times) out.message(3, written(time));
  out.numbers(5, wide(active));
  for (const std::int64_t change : changes) out.message(6, written(CpExpr(change)));
  add(kReservoir, out, {});
}

void CpModel::minimise(std::span<const CpTerm> terms, std::int64_t offset) {
  std::vector<std::int64_t> vars, coefficients;
  for (const CpTerm& term : terms) {
    vars.push_back(term.var);
    coefficients.push_back(term.coefficient);
  }
  objective_ = WireWriter();
  objective_.numbers(1, vars).real(2, static_cast<double>(offset)).numbers(4, coefficients);
}

void CpModel::add_hint(CpVar var, std::int64_t value) {
  hint_vars_.push_back(var);
  hint_values_.push_back(value);
}

std::string CpModel::encode() const {
  WireWriter out = body_;
  if (!objective_.bytes().empty()) out.message(kObjective, objective_);
  return out.bytes();
}

std::string CpModel::encode_hint() const {
  return WireWriter().numbers(1, hint_vars_).numbers(2, hint_values_).bytes();
}

}  // namespace lowtide::engines

// Translates a view of one tensor into a view of another tensor with the same elements.
//
// The position of an element is read as a number with one digit for each dimension of the tensor,
// the outermost first. Neighbouring dimensions that are contiguous in both layouts form one digit.
// Each dimension of the view must step through one digit and never carry.
#include <algorithm>
#include <array>
#include <numeric>

#include "lowtide/transforms/rules/rewriting.h"

namespace lowtide {

namespace {

struct Digit {
  std::int64_t extent, from, to;
  std::int64_t highest = 0;  // largest value of this digit in the view
};

// The digits, outermost first; nullopt if elements of `from` overlap.
std::optional<std::vector<Digit>> digits_of(const Operand& from, const Operand& to) {
  std::vector<Digit> digits;
  for (std::size_t d = 0; d < from.shape.size(); ++d)
    if (from.shape[d] != 1) digits.push_back({from.shape[d], from.strides[d], to.strides[d]});
  std::ranges::stable_sort(digits, std::greater<>{}, &Digit::from);
  std::vector<Digit> merged;
  for (const Digit& digit : digits) {
    if (digit.from <= 0 || digit.extent == 0) return std::nullopt;
    std::int64_t inside = 0, stored = 0;
    if (__builtin_mul_overflow(digit.extent, digit.from, &inside) ||
        __builtin_mul_overflow(digit.extent, digit.to, &stored))
      return std::nullopt;
    if (!merged.empty() && merged.back().from < inside) return std::nullopt;
    if (!merged.empty() && merged.back().from == inside && merged.back().to == stored) {
      merged.back() = {merged.back().extent * digit.extent, digit.from, digit.to};
    } else {
      merged.push_back(digit);
    }
  }
  return merged;
}

}  // namespace

std::optional<Operand> relaid(const Operand& seen, const Operand& from, const Operand& to) {
  if (from.shape != to.shape || seen.dtype != from.dtype || from.dtype != to.dtype ||
      from.strides.size() != from.shape.size() || to.strides.size() != to.shape.size() ||
      !reach_of(seen) || !reach_of(from) || !reach_of(to) || reach_of(seen) == 0)
    return std::nullopt;
  auto digits = digits_of(from, to);
  if (!digits) return std::nullopt;
  Operand found = seen;
  found.tensor = to.tensor;
  found.offset = to.offset;
  std::int64_t left = seen.offset - from.offset;
  if (left < 0) return std::nullopt;
  for (Digit& digit : *digits) {
    digit.highest = left / digit.from;
    left %= digit.from;
    if (digit.highest >= digit.extent) return std::nullopt;
    found.offset += digit.highest * digit.to;
  }
  if (left != 0) return std::nullopt;
  for (std::size_t d = 0; d < seen.shape.size(); ++d) {
    const std::int64_t stride = seen.strides[d];
    if (seen.shape[d] == 1 || stride == 0) continue;
    const auto digit =
        std::ranges::find_if(*digits, [&](const Digit& one) { return one.from <= stride; });
    if (digit == digits->end() || stride % digit->from != 0) return std::nullopt;
    const std::int64_t step = stride / digit->from;
    // The digit must stay below its extent, otherwise it would carry. This cannot overflow, since
    // `seen` reaches that far.
    digit->highest += (seen.shape[d] - 1) * step;
    if (digit->highest >= digit->extent) return std::nullopt;
    found.strides[d] = step * digit->to;
  }
  return found;
}

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<std::int64_t>(shape[d], 1);
  return strides;
}

bool is_row_major(const Operand& operand) {
  if (operand.offset != 0 || operand.strides.size() != operand.shape.size()) return false;
  std::int64_t next = 1;
  for (std::size_t d = operand.shape.size(); d-- > 0;) {
    if (operand.shape[d] == 0) return false;
    if (operand.shape[d] != 1 && operand.strides[d] != next) return false;
    if (__builtin_mul_overflow(next, operand.shape[d], &next)) return false;
  }
  return true;
}

}  // namespace lowtide

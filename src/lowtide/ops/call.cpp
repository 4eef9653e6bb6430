// The bytes that a call moves, and the number type in which it computes.
#include "lowtide/ops/call.h"

#include <algorithm>
#include <array>

#include "lowtide/base/units.h"

namespace lowtide {

namespace {

std::int64_t bytes_of(const Operand& operand) {
  // An operand of unknown type counts as f32, as its operations do.
  std::int64_t bytes = element_bytes(operand.dtype).value_or(4);
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    const bool stored = d >= operand.strides.size() || operand.strides[d] != 0;
    if (stored || operand.shape[d] == 0)
      bytes = checked_mul_div(bytes, operand.shape[d], 1, Rounding::floor);
  }
  return bytes;
}

bool same_part(const Operand& a, const Operand& b) {
  return a.tensor == b.tensor && a.offset == b.offset && a.shape == b.shape &&
         a.strides == b.strides;
}

// Kinds that read of their first operand what further ones say.
bool picks(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kKinds = {"aten.embedding", "aten.index", "aten.gather",
                                                      "aten.index_select"};
  const auto overload = kind.find('.', kind.find('.') + 1);
  return std::ranges::find(kKinds, kind.substr(0, overload)) != kKinds.end();
}

}  // namespace

Call call_of(const Op& op) { return {op.kind, op.operands, op.results, op.arguments}; }

std::int64_t moved_bytes(const Call& call) {
  const auto sum = [](std::span<const Operand> list) {
    Bytes all;
    for (auto it = list.begin(); it != list.end(); ++it) {
      const auto seen = [&](const Operand& other) { return same_part(*it, other); };
      if (std::none_of(list.begin(), it, seen)) all = checked_add(all, Bytes(bytes_of(*it)));
    }
    return all;
  };
  const Bytes made = sum(call.results);
  if (call.operands.empty() || !picks(call.kind))
    return checked_add(sum(call.operands), made).count();
  const Bytes picked = std::min(Bytes(bytes_of(call.operands.front())), made);
  return checked_add(checked_add(picked, sum(call.operands.subspan(1))), made).count();
}

bool is_floating(std::string_view dtype) {
  return dtype.starts_with("bf") || ((dtype.starts_with("f") || dtype.starts_with("c")) &&
                                     dtype.size() > 1 && dtype[1] >= '0' && dtype[1] <= '9');
}

std::string_view computed_in(std::string_view kind, std::string_view dtype) {
  return dtype == "f32" && kind.starts_with("aten.convolution") ? "tf32" : dtype;
}

std::string_view computed_in(const Call& call) {
  for (const auto& list : {call.operands, call.results})
    for (const Operand& operand : list)
      if (is_floating(operand.dtype)) return computed_in(call.kind, operand.dtype);
  return computed_in(call.kind, "f32");
}

}  // namespace lowtide

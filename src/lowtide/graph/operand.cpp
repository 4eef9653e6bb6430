// Extents, strides and number types: arithmetic only.
#include "lowtide/graph/operand.h"

#include <algorithm>
#include <array>

namespace lowtide {

bool Literal::operator==(const Literal& other) const { return value == other.value; }

bool Operand::laid_out_as(const Operand& other) const {
  return shape == other.shape && strides == other.strides && offset == other.offset &&
         dtype == other.dtype;
}

std::optional<std::int64_t> element_bytes(std::string_view dtype) {
  struct Known {
    std::string_view name;
    std::int64_t bytes;
  };
  static constexpr std::array<Known, 22> kKnown = {
      {{"f64", 8},    {"f32", 4},        {"bf16", 2},       {"f16", 2},       {"f8e4m3fn", 1},
       {"f8e5m2", 1}, {"f8e4m3fnuz", 1}, {"f8e5m2fnuz", 1}, {"f8e8m0fnu", 1}, {"i64", 8},
       {"i32", 4},    {"i16", 2},        {"i8", 1},         {"u64", 8},       {"u32", 4},
       {"u16", 2},    {"u8", 1},         {"bool", 1},       {"c32", 4},       {"c64", 8},
       {"c128", 16},  {"tf32", 4}}};
  const auto found = std::ranges::find(kKnown, dtype, &Known::name);
  if (found == kKnown.end()) return std::nullopt;
  return found->bytes;
}

std::optional<std::int64_t> reach_of(const Operand& operand) {
  if (operand.shape.size() != operand.strides.size() || operand.offset < 0) return std::nullopt;
  std::int64_t last = operand.offset;
  for (std::size_t i = 0; i < operand.shape.size(); ++i) {
    std::int64_t step = 0;
    if (operand.shape[i] < 0 || operand.strides[i] < 0) return std::nullopt;
    if (operand.shape[i] == 0) return 0;
    if (__builtin_mul_overflow(operand.shape[i] - 1, operand.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  if (last == INT64_MAX) return std::nullopt;
  return last + 1;
}

}  // namespace lowtide

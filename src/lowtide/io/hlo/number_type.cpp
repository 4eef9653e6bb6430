// In the order of XLA's list (xla_data.proto, PrimitiveType).
#include "lowtide/io/hlo/number_type.h"

#include <algorithm>
#include <array>

namespace lowtide::io::hlo {

namespace {

constexpr std::array<NumberType, 34> kTypes = {{{"pred", "bool", 8},
                                                {"s1", "i1", 1},
                                                {"s2", "i2", 2},
                                                {"s4", "i4", 4},
                                                {"s8", "i8", 8},
                                                {"s16", "i16", 16},
                                                {"s32", "i32", 32},
                                                {"s64", "i64", 64},
                                                {"u1", "u1", 1},
                                                {"u2", "u2", 2},
                                                {"u4", "u4", 4},
                                                {"u8", "u8", 8},
                                                {"u16", "u16", 16},
                                                {"u32", "u32", 32},
                                                {"u64", "u64", 64},
                                                {"f16", "f16", 16},
                                                {"f32", "f32", 32},
                                                {"bf16", "bf16", 16},
                                                {"f64", "f64", 64},
                                                {"f8e5m2", "f8e5m2", 8},
                                                {"f8e4m3", "f8e4m3", 8},
                                                {"f8e4m3fn", "f8e4m3fn", 8},
                                                {"f8e4m3b11fnuz", "f8e4m3b11fnuz", 8},
                                                {"f8e3m4", "f8e3m4", 8},
                                                {"f8e5m2fnuz", "f8e5m2fnuz", 8},
                                                {"f8e4m3fnuz", "f8e4m3fnuz", 8},
                                                {"f4e2m1fn", "f4e2m1fn", 4},
                                                {"f6e2m3fn", "f6e2m3fn", 6},
                                                {"f6e3m2fn", "f6e3m2fn", 6},
                                                {"f8e8m0fnu", "f8e8m0fnu", 8},
                                                {"c64", "c64", 64},
                                                {"c128", "c128", 128},
                                                {"token", "token", 0},
                                                {"opaque", "opaque", 0}}};

}  // namespace

const NumberType* find_number_type(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &NumberType::name);
  return found == kTypes.end() ? nullptr : &*found;
}

}  // namespace lowtide::io::hlo

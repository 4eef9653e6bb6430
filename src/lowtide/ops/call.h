// One call of an operator, for prices: an op of a graph, or an op that a transform makes of it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/operand.h"

namespace lowtide {

// An operand's tensor only says which operands share a storage. Shapes, strides and number types
// are those of the view that the op reads. Operands are in the order of the operator's schema.
struct Call {
  std::string_view kind;
  std::span<const Operand> operands, results;
  std::span<const Argument> arguments;
};

Call call_of(const Op& op);

// The bytes that the call reads and writes: the span of each operand and result. An equal span of a
// tensor counts once; a broadcast dimension (stride 0) counts only the stored elements. A kind that
// selects rows (an embedding) reads as many bytes of its first operand as it writes. OverflowError
// beyond 63 bits.
std::int64_t moved_bytes(const Call& call);

// The number type of the computation: that of the first floating-point operand or result; f32 if
// there is none. Convolutions of f32 run in tf32.
std::string_view computed_in(const Call& call);

// Whether the type is a floating-point or complex type.
bool is_floating(std::string_view dtype);

// The number type in which a kind computes if its first floating-point tensor has this type.
std::string_view computed_in(std::string_view kind, std::string_view dtype);

}  // namespace lowtide

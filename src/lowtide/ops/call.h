// One call of an operator, as prices see it: an op of a graph, or what a transform makes of one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/operand.h"

namespace lowtide {

// The tensors that operands name say only which of them lie in one storage; shapes, strides and
// number types are those of what is read. Operands stand in the order of the operator's schema.
struct Call {
  std::string_view kind;
  std::span<const Operand> operands, results;
  std::span<const Argument> arguments;
};

Call call_of(const Op& op);

// Bytes that it reads and writes: of each operand and result what it spans, the same part of the
// same tensor once, and of what is broadcast (stride 0) only what is stored. A kind that picks rows
// (an embedding) reads of its first operand as much as it makes. OverflowError beyond 63 bits.
std::int64_t moved_bytes(const Call& call);

// The number type that it computes in: that of the first floating-point operand, or result; f32 if
// there is none. Convolutions of f32 run in tf32.
std::string_view computed_in(const Call& call);

// Is it a type of floating-point or complex numbers?
bool is_floating(std::string_view dtype);

// The type in which a kind computes, whose first floating-point tensor has this one.
std::string_view computed_in(std::string_view kind, std::string_view dtype);

}  // namespace lowtide

// How many operations an op does, counted from its kind and the shapes of its tensors.
//
// Only what multiplies matrices computes as long as it moves bytes: products, convolutions,
// attention. All other kinds that PyTorch has stream their tensors and count as 0.
#pragma once

#include <cstdint>
#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/call.h"

namespace lowtide {

// A multiply-add is two; causal attention counts as full. Shapes are those of whole storages: where
// an op reads a part of a tensor, the operands of a product may contradict each other, and the
// smaller count stands. InputError (place: the op) if kind and shapes do not say: no kind, one that
// is not PyTorch's, or shapes that are missing or fit no such op. OverflowError beyond 63 bits.
std::int64_t counted_operations(const Graph& graph, OpId op);

// The same of a call, whose operands say what is read of a storage; half of it where it says
// `is_causal`, as captured graphs have it. `label` is what errors call it.
std::int64_t counted_operations(const Call& call, const std::string& label);

}  // namespace lowtide

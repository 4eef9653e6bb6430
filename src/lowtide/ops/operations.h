// Counts the operations of an op from its kind and the shapes of its tensors.
//
// Only matrix products, convolutions and attention compute for about as long as they move bytes, or
// longer. All other kinds of PyTorch stream their tensors and count as 0.
#pragma once

#include <cstdint>
#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/call.h"

namespace lowtide {

// A multiply-add counts as two; causal attention counts as full. Shapes are those of whole
// storages: if an op reads a part of a tensor, the operands of a product may contradict each other;
// then the smaller count is returned. InputError (place: the op) if kind and shapes do not
// determine the count: no kind, a kind that is not PyTorch's, shapes that are missing or do not fit
// the kind. OverflowError beyond 63 bits.
std::int64_t counted_operations(const Graph& graph, OpId op);

// The same for a call, whose operands say what is read of a storage. Attention with `is_causal`, as
// in captured graphs, counts half. `label` names the op in errors.
std::int64_t counted_operations(const Call& call, const std::string& label);

}  // namespace lowtide

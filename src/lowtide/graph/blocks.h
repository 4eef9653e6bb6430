// Blocks of ops that are the same but for names and numbers: the layers of a network, say, whose
// plans could be the same too.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lowtide/graph/alike.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// Two blocks are equal if their ops and tensors correspond one to one such that these agree:
//
// - of an op: kind, literal arguments (without any: attributes, but for "source"), workspace,
//   whether it may be recomputed, operands and results (argument, index, shape, strides, offset,
//   number type), which inputs it mutates and which pairs it can run in place;
// - of a tensor: bytes, shape and number type; whether it leaves the block, read by an op outside
//   or an output of the graph;
// - which output feeds which input, in the order of each op's inputs and outputs; which inputs are
//   one and the same tensor, one from outside too; `after` between ops of the block.
//
// Names, indices, the listing and the given order do not matter. Nor do times, which measuring
// tells apart where nothing else does; origins, phases and roles; nor what is outside: which tensor
// an input is there, whether it may be freed, `after` across the border.
//
// That is Alike::code; alike.h has another.
struct BlockHash {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const BlockHash&) const = default;
};
// 32 lower-case hexadecimal digits.
std::string to_string(const BlockHash& hash);

struct BlockForm {
  BlockHash hash;
  // The block's ops such that two exact blocks of one hash correspond place by place.
  std::vector<OpId> ops;
  // Blocks of one hash are equal, but for a collision in 128 bits. False where a block is so full
  // of symmetries that telling them apart was given up: equal blocks still have one hash, but
  // others may have it too that are alike around every op. A random regular graph of like ops is
  // such a block; none of our examples and generators makes one.
  bool exact = true;
};

// `ops` in any order, each once; any set, connected or not. Linear in practice: a few passes over
// the links, more where ops are alike and nothing around them tells them apart.
BlockForm block_form(const Graph& graph, std::span<const OpId> ops, Alike alike = Alike::code);
BlockHash block_hash(const Graph& graph, std::span<const OpId> ops, Alike alike = Alike::code);

}  // namespace lowtide

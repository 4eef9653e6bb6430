// Canonical hashes of blocks of ops, so that equal blocks are found and planned once: the layers of
// a network, for example.
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
// Not compared: names, indices, the order of the lists and the given order; times, since measured
// times of equal ops differ; origins, phases and roles; and everything outside: which tensor an
// input is there, whether it may be freed, `after` across the border.
//
// This is Alike::code; see alike.h for Alike::plan.
struct BlockHash {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const BlockHash&) const = default;
};
// A hash of 32 lower-case hexadecimal digits.
std::string to_string(const BlockHash& hash);

struct BlockForm {
  BlockHash hash;
  // The block's ops, ordered such that two exact blocks with one hash correspond op by op.
  std::vector<OpId> ops;
  // True: blocks with the same hash are equal, except for a collision of 128 bits. False: the block
  // has so many symmetries that the search gave up. Equal blocks still have equal hashes, but other
  // blocks with equal neighbourhoods of every op may have the same hash. An example is a random
  // regular graph of equal ops; no example or generator of this project makes one.
  bool exact = true;
};

// `ops`: any set of ops, connected or not, in any order, each once. Linear in practice: a few
// passes over the links, and more for equal ops with equal neighbourhoods.
BlockForm block_form(const Graph& graph, std::span<const OpId> ops, Alike alike = Alike::code);
BlockHash block_hash(const Graph& graph, std::span<const OpId> ops, Alike alike = Alike::code);

}  // namespace lowtide

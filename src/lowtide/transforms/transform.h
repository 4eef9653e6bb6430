// Changes of a graph that keep what it computes, as plain data: what plan files list before their
// steps. apply.h makes the graph of them; docs/reference/formats.md says what each kind means.
//
// Ops and tensors are named by the file's indices: those of the graph file, and after them what
// earlier transforms of the same list have made. Prices are always there, in numbers, so that a
// plan and its graph are all that is needed to verify it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lowtide/base/ids.h"
#include "lowtide/base/units.h"

namespace lowtide {

template <class AnyId>
struct Price {
  AnyId of;
  Ticks time;
  Bytes workspace;
  bool operator==(const Price&) const = default;
};
using OpPrice = Price<OpId>;
using TensorPrice = Price<TensorId>;

// A dimension of a tensor, counted in its shape; one for each component of a region, from which all
// other dimensions follow.
struct SplitAxis {
  TensorId tensor;
  std::int64_t dim = 0;
  bool operator==(const SplitAxis&) const = default;
};

// Fission (MAGIS, section 4.2): every op of a region runs `parts` times on slices along an axis.
struct Split {
  std::vector<OpId> ops;  // those that carry the axis, each once
  std::int64_t parts = 2;
  std::vector<SplitAxis> axes;
  bool exact = false;  // no bit changes
  // Of every op's part: one list, or one for each part where parts differ.
  std::vector<std::vector<OpPrice>> prices;
  std::vector<OpPrice> before;     // of what an op does once for all parts
  std::vector<TensorPrice> joins;  // of putting one part of an output in its place, or adding it

  bool operator==(const Split&) const = default;
};

// The backward runs in one with the forward: what hung on the barrier may run before it.
struct Hoist {
  TensorId tangent;  // the barrier's only output
  bool exact = false;
  std::vector<TensorPrice> joins;  // of scaling a gradient by the tangent that comes in the end

  bool operator==(const Hoist&) const = default;
};

// A pattern replaced by another that computes the same, by a rule of substitution.h.
struct Substitute {
  std::string rule;
  std::vector<OpId> ops;  // what the rule is told, each once
  bool exact = false;
  std::vector<OpPrice> prices;  // of the ops that it makes, which get the next indices

  bool operator==(const Substitute&) const = default;
};

using Transform = std::variant<Split, Hoist, Substitute>;

// Of the kind: "split", "hoist" or "substitute", which is the name of its technique too.
std::string_view kind_of(const Transform& transform);
bool is_exact(const Transform& transform);

// What is wrong with it whatever the graph: InputError, whose place is a JSON pointer into it. No
// ops, an op or a price named twice, fewer than two parts, a region without an axis, a split's list
// of prices without that of an op, or with that of one that is not among them, negative prices.
void check_complete(const Transform& transform);

// "split of 12 ops into 4 parts", for people.
std::string describe(const Transform& transform);

}  // namespace lowtide

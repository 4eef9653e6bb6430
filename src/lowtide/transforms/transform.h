// Transforms: changes of a graph that keep what it computes, as plain data. Plan files list them
// before their steps. apply.h applies them; docs/reference/formats.md defines each kind.
//
// Ops and tensors are named by file indices: those of the graph file, followed by those that
// earlier transforms of the list made. All prices are stored as numbers, so that a plan and its
// graph are sufficient for verification.
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

// A dimension of a tensor, as an index into its shape. A split names one for each connected
// component of its region; the dimensions of all other tensors follow from it.
struct SplitAxis {
  TensorId tensor;
  std::int64_t dim = 0;
  bool operator==(const SplitAxis&) const = default;
};

// Fission (MAGIS, section 4.2): every op of a region runs `parts` times, on slices along an axis.
struct Split {
  std::vector<OpId> ops;  // the region, each op once
  std::int64_t parts = 2;
  std::vector<SplitAxis> axes;
  bool exact = false;  // claimed: results are bit-identical
  // The price of one part of every op: one list for all parts, or one list for each part.
  std::vector<std::vector<OpPrice>> prices;
  std::vector<OpPrice> before;     // the price of the work that an op does once for all parts
  std::vector<TensorPrice> joins;  // the price of copying, or adding, one part of an output

  bool operator==(const Split&) const = default;
};

// Runs the backward within the forward: ops that depended on the barrier may run before it.
struct Hoist {
  TensorId tangent;  // the barrier's only output
  bool exact = false;
  std::vector<TensorPrice> joins;  // the price of scaling a gradient by the caller's tangent

  bool operator==(const Hoist&) const = default;
};

// Replaces a pattern of ops by other ops with the same result, by a rule of substitution.h.
struct Substitute {
  std::string rule;
  std::vector<OpId> ops;  // the arguments of the rule, each once
  bool exact = false;
  std::vector<OpPrice> prices;  // of the new ops, which get the next file indices

  bool operator==(const Substitute&) const = default;
};

using Transform = std::variant<Split, Hoist, Substitute>;

// "split", "hoist" or "substitute", which is also the name of the technique.
std::string_view kind_of(const Transform& transform);
bool is_exact(const Transform& transform);

// Throws InputError, with a JSON pointer into the transform, for errors that do not depend on the
// graph: no ops, an op or a price listed twice, fewer than two parts, a region without an axis, a
// missing or superfluous price of a split, a negative price.
void check_complete(const Transform& transform);

// "split of 12 ops into 4 parts", for people.
std::string describe(const Transform& transform);

}  // namespace lowtide

// How far an axis reaches in a graph, op by op.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/axis.h"
#include "lowtide/ops/dimensions/letter.h"

namespace lowtide::dimensions {

enum class State : std::uint8_t {
  whole,    // every part sees all of it
  split,    // along an axis: a part makes or reads some slices
  partial,  // every part makes a tensor of this size; their sum is the whole
};

struct TensorState {
  State state = State::whole;
  Axis axis;                 // of a split tensor
  std::int64_t longest = 0;  // of a split tensor: slices of the longest that is divided with it

  bool operator==(const TensorState&) const = default;
};

// How a part sees an operand or a result of an op that carries an axis.
struct View {
  State state = State::whole;
  // For a split view, the position of the axis. For a whole view, a broadcast dimension (stride 0)
  // with as many indices as the axis; it is shorter in a part.
  std::optional<Position> position;
  // A split operand whose tensor is not divided that way, as `labels[:, 1:]`: parts read slices of
  // the operand from the whole tensor (axis.h, in_whole), which no op that carries an axis makes.
  bool from_whole = false;
  bool before = false;  // a result that is made once, whole, before the parts
};

// An op that can be run on slices.
struct Carry {
  // The number of slices that the op sees; if it pads a crop, the most that any view sees.
  std::int64_t extent = 0;
  std::vector<View> operands, results;  // one for each of the op's
  Weight weight = Weight::one;
  // The op draws random numbers: it is run once, whole, before the parts, and reads no operand that
  // they make. Its results are read in slices.
  bool before = false;
  std::int64_t longest = 0;  // slices of the longest tensor that is divided with its views
};

enum class StopCause : std::uint8_t {
  mixes,      // needs all elements along the axis together
  unknown,    // no rule for its kind, or no operands
  conflict,   // two axes meet, or the op reads a tensor whole that the parts make
  misplaced,  // the axis does not lie in the op's operands as slices
  sum,        // reads a sum that is not complete
};

// An op that reads or makes a split or partial tensor, and cannot be run on slices.
struct Stop {
  StopCause cause{};
  TensorId tensor;     // the tensor that stops the axis
  std::string reason;  // "takes all of dimension 1 of \"self\""
};

struct Reach {
  std::vector<TensorState> tensors;
  std::vector<std::optional<Carry>> carries;  // of each op
  std::vector<std::optional<Stop>> stops;     // of each op; an op has at most one of both
};

std::string_view to_string(State state);
std::string_view to_string(StopCause cause);

}  // namespace lowtide::dimensions

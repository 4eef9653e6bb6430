// A graph while it is made of a computation: tensors and ops as lists, which may still change.
// Private to the room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/graph/builder.h"
#include "lowtide/graph/graph.h"

namespace lowtide::io::hlo {

using TensorIndex = std::int32_t;
using OpIndex = std::int32_t;
inline std::size_t index(TensorIndex tensor) { return static_cast<std::size_t>(tensor); }

// Which inputs an op's outputs could be written over. Sizes are not compared yet.
struct Overwrites {
  std::vector<TensorIndex> any;                   // any output
  std::vector<std::array<TensorIndex, 2>> exact;  // this output over this input
};

struct Draft {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<OpIndex> producers;  // by tensor; -1: an input
  std::vector<Op> ops;
  std::vector<OpLinks> links;
  std::vector<Overwrites> overwrites;
  std::vector<std::size_t> places;  // by op: where its instruction stands in the text
  std::vector<TensorIndex> outputs;
  // An output of the graph, and the donated input whose buffer becomes its own.
  std::vector<std::array<TensorIndex, 2>> aliases;

  TensorIndex add_tensor(Tensor tensor);
  // Its outputs have no producer yet.
  OpIndex add_op(Op op, OpLinks links, Overwrites over, std::size_t place);
};

// Every output has its bytes from the start to the end: those of the input that is donated for it,
// or of a tensor that is held. XLA counts them so.
void hold_outputs(Draft& draft);

// Neither inputs nor outputs take bytes: what is left are the temporaries of a computation whose
// caller has room for both.
void leave_temporaries(Draft& draft);

// InputError (place in `text`: the instruction; or the computation, at `start`) for sums of 2^63 or
// more.
Graph build(Draft draft, std::string_view text, std::size_t start);

}  // namespace lowtide::io::hlo

// The buffers of a plan, and the order in which it takes and gives back their memory.
//
//   step     0: compute a   1: compute b   2: free a   3: compute c in place of b
//   a        [------------------------------------)
//   b, then c               [------------------------------------------------------
//   workspace of b          [-------------)
//
// Moment i is step i. A free still has what it frees, as docs/reference/cost.md counts it, so the
// sum of the buffers live at a moment is the bytes in use during that step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lowtide/base/ids.h"
#include "lowtide/graph/graph.h"
#include "lowtide/layout/buffer.h"
#include "lowtide/plan/plan.h"

namespace lowtide::layout {

// What a buffer of a plan is.
struct BufferOrigin {
  enum class Kind : std::uint8_t {
    resident,   // the bytes that no tensor of the graph stands for
    input,      // a tensor that is live before the first step
    computed,   // an output of the op that the step computes
    fetched,    // a tensor that the step brings back from the host
    workspace,  // of the op that the step computes
  };
  static constexpr std::int32_t kStart = -1;
  Kind kind;
  std::int32_t step;  // which begins it; kStart for what is there before the first step
  // In the plan's indices. A buffer that an op overwrites in place keeps the tensor that began it.
  // Invalid for workspace and resident bytes.
  TensorId tensor;
  bool operator==(const BufferOrigin&) const = default;
};

struct MemoryEvent {
  enum class Kind : std::uint8_t { allocate, free };
  Kind kind;
  std::int32_t buffer;  // an index
  std::int32_t step;    // during which it happens; BufferOrigin::kStart
  bool operator==(const MemoryEvent&) const = default;
};

struct Lifetimes {
  std::vector<Buffer> buffers;        // in the order of their allocation; none of no bytes
  std::vector<BufferOrigin> origins;  // of each buffer
  // In order. At the start resident bytes, then inputs by index; during a computation its outputs
  // in the order of the op (but for those that overwrite an input), its workspace, and the free of
  // its workspace. What is live at the end is not freed.
  std::vector<MemoryEvent> events;
};

// Of a plan that breaks no rule: InternalError if a step uses a tensor that is not live. Linear in
// the links of the plan. Throws as apply_transforms does.
Lifetimes lifetimes(const Graph& graph, const Plan& plan);

// The same without resident bytes, which need no place, and without events.
Lifetimes placeable(const Graph& graph, const Plan& plan);

}  // namespace lowtide::layout

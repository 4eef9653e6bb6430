// The tensors that must be live or recomputed between two cut points, as a flow network. Private
// to the solver; see window_bound.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/bounds/common/max_flow.h"
#include "lowtide/solve/bounds/cut/cut_point.h"

namespace lowtide::solve::bounds {

// Cut points ("moments" in the code) are first computations that follow one another in every plan.
// A window begins after cut point `from` and ends with cut point `to`, or with the end of the plan
// if `to` is the number of cut points.
struct Window {
  struct Item {
    TensorId tensor;
    bool needed;            // by a first computation inside the window, or as an output at the end
    std::int32_t producer;  // index in ops of the op that can recompute it; -1: none can
    std::int32_t arc;       // to that op; -1: to the sink
  };

  std::size_t from = 0, to = 0;
  std::vector<Item> items;              // item i is node ops.size() + i of the flow
  std::vector<OpId> ops;                // node i
  Csr<std::int32_t> reads;              // by op: the items that it reads
  std::vector<std::int32_t> unbounded;  // arcs
  MaxFlow flow;

  bool unit() const { return to == from + 1; }
  std::int32_t node(std::size_t item) const { return static_cast<std::int32_t>(ops.size() + item); }
};

// The windows: between consecutive cut points and from each cut point to the end; or between all
// pairs as well, which proves more, but their number is quadratic.
enum class WindowSet : std::uint8_t { to_next_and_end, all };

// Tensors that later windows hold at the end of a window count as read there.
std::vector<Window> make_windows(const Problem& problem, std::span<const CutPoint> moments,
                                 WindowSet set);

// The size: ops, tensors and links.
std::size_t size_of(const Graph& graph);

// The work of making all windows over so many cut points.
std::int64_t work_of_windows(const Graph& graph, std::size_t moments);

// By tensor, whether it is in use while the op runs in every plan: its inputs and outputs, and
// inputs that stay.
std::vector<std::uint8_t> in_use_at(const Graph& graph, OpId op);

}  // namespace lowtide::solve::bounds

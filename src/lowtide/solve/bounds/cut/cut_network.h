// The choice between keeping, offloading and recomputing tensors at one cut point, as a flow
// network whose cuts are the choices. Private to the solver; docs/why/bounds.md has a drawing.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"
#include "lowtide/solve/bounds/common/max_flow.h"
#include "lowtide/solve/bounds/cut/cut_point.h"

namespace lowtide::solve::bounds {

// The ops on the source's side of a cut run again after the cut point, and the cut pays their time.
// A tensor that is needed after the cut point and not recomputed is kept or has a host copy, and
// the cut pays the price of the tensor.
class CutNetwork {
 public:
  // A tensor that may be live at the cut point or not. Tensors that are live there in any case are
  // no choices. A tensor that is needed and cannot be recomputed pays its price in every cut
  // (`outright`); it may be on the host.
  struct Choice {
    TensorId tensor;
    std::int64_t bytes;
    Ticks out, in;        // time of its copy to the host before the cut point, and back after it
    bool needed;          // an op that certainly follows reads it; else only ops that run again do
    std::int32_t reader;  // if not `needed`: the node whose side decides whether it is needed
    std::int32_t producer;  // node of the op that can recompute it; -1: none
    std::int32_t arc;       // from reader to producer; -1 if one of them is missing
    bool outright() const { return needed && producer < 0; }
  };

  CutNetwork(const Problem& problem, const CutPoint& cut_point);

  // Bytes in use at the cut point in every plan.
  Bytes fixed() const { return fixed_; }
  std::span<const Choice> choices() const { return choices_; }
  // The first nodes of the flow network: node i is ops()[i].
  std::span<const OpId> ops() const { return ops_; }
  // The side on which the first computation of ops()[op] is. With `either`, an op that runs after
  // the cut point may run there for the first time.
  Side side(std::size_t op) const { return sides_[op]; }
  // With a machine: the total time of the graph's ops on that side.
  Ticks time(Side side) const { return times_[static_cast<std::size_t>(side)]; }
  // Whether tensors that are not kept may be on the host.
  bool hosts() const { return hosts_; }

  MaxFlow& flow() { return flow_; }
  const MaxFlow& flow() const { return flow_; }
  // Resets all capacities except the unbounded ones, which say that a recomputed op needs its
  // inputs.
  void clear();
  void grow_price(const Choice& choice, std::int64_t by);
  // The following refer to the last minimum cut.
  bool runs_again(std::size_t op) const {
    return flow_.on_source_side(static_cast<std::int32_t>(op));
  }
  // Whether the cut pays the price of the choice: the tensor is needed and not recomputed.
  bool pays(const Choice& choice) const {
    if (!choice.needed && !flow_.on_source_side(choice.reader)) return false;
    return choice.producer < 0 || !flow_.on_source_side(choice.producer);
  }

 private:
  Bytes fixed_;
  bool hosts_;
  std::array<Ticks, 4> times_;
  std::vector<Choice> choices_;
  std::vector<OpId> ops_;
  std::vector<Side> sides_;
  std::vector<std::int32_t> unbounded_;  // arcs
  MaxFlow flow_;
};

}  // namespace lowtide::solve::bounds

// What one cut point must keep or make again, as a network whose cuts are the choices. Private to
// the solver; the picture is in docs/why/bounds.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"
#include "lowtide/solve/bounds/common/max_flow.h"
#include "lowtide/solve/bounds/cut/cut_point.h"

namespace lowtide::solve::bounds {

// A cut says of every op whether it runs again after the cut point (the source's side), and pays
// its time; what is needed after the cut point and not made again is kept, and pays its price.
class CutNetwork {
 public:
  // A tensor that may be kept or not. What is in use at the cut point in any case is not among
  // them.
  struct Choice {
    TensorId tensor;
    std::int64_t bytes;
    bool needed;          // by something sure to come; else only if a reader runs again
    std::int32_t reader;  // node on whose side it is decided whether it is needed, if not `needed`
    std::int32_t producer;  // node of the op that can make it again; -1: none can
    std::int32_t arc;       // from reader to producer; -1 if one of them is missing
  };

  CutNetwork(const Problem& problem, const CutPoint& cut_point);

  // In use at the cut point, whatever is kept beside it.
  Bytes fixed() const { return fixed_; }
  std::span<const Choice> choices() const { return choices_; }
  // Node i, for i below their number, stands for ops()[i].
  std::span<const OpId> ops() const { return ops_; }
  // What it costs to run it again. 0 for an op that may not have run before the cut point.
  Ticks again(std::size_t op) const { return again_[op]; }
  Ticks all_again() const { return all_again_; }

  MaxFlow& flow() { return flow_; }
  const MaxFlow& flow() const { return flow_; }
  // No capacities but the unbounded ones: whoever runs again needs its inputs.
  void clear();
  void grow_price(const Choice& choice, std::int64_t by);
  // In the cut of the last run.
  bool runs_again(std::size_t op) const {
    return flow_.on_source_side(static_cast<std::int32_t>(op));
  }
  bool kept(const Choice& choice) const {
    if (!choice.needed && !flow_.on_source_side(choice.reader)) return false;
    return choice.producer < 0 || !flow_.on_source_side(choice.producer);
  }

 private:
  Bytes fixed_;
  Ticks all_again_;
  std::vector<Choice> choices_;
  std::vector<OpId> ops_;
  std::vector<Ticks> again_;
  std::vector<std::int32_t> unbounded_;  // arcs
  MaxFlow flow_;
};

}  // namespace lowtide::solve::bounds

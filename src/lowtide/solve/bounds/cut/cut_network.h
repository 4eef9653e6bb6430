// What one cut point must keep, send to the host or make again, as a network whose cuts are the
// choices. Private to the solver; the picture is in docs/why/bounds.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"
#include "lowtide/solve/bounds/common/max_flow.h"
#include "lowtide/solve/bounds/cut/cut_point.h"

namespace lowtide::solve::bounds {

// A cut says of every op whether it runs again after the cut point (the source's side), and pays
// its time; what is needed after the cut point and not made again is kept, or has a copy on the
// host, and pays its price.
class CutNetwork {
 public:
  // A tensor that may be kept or not. What is in use at the cut point in any case is not among
  // them. One that is needed and that nothing can make again pays outright: then it may be on the
  // host.
  struct Choice {
    TensorId tensor;
    std::int64_t bytes;
    Ticks out, in;        // of the copies to the host before the cut point and back after it
    bool needed;          // by something sure to come; else only if a reader runs again
    std::int32_t reader;  // node on whose side it is decided whether it is needed, if not `needed`
    std::int32_t producer;  // node of the op that can make it again; -1: none can
    std::int32_t arc;       // from reader to producer; -1 if one of them is missing
    bool outright() const { return needed && producer < 0; }
  };

  CutNetwork(const Problem& problem, const CutPoint& cut_point);

  // In use at the cut point, whatever is kept beside it.
  Bytes fixed() const { return fixed_; }
  std::span<const Choice> choices() const { return choices_; }
  // Node i, for i below their number, stands for ops()[i].
  std::span<const OpId> ops() const { return ops_; }
  // Where its first computation comes: `either` means that to run after the cut point may be to run
  // for the first time.
  Side side(std::size_t op) const { return sides_[op]; }
  // With a machine: of all ops of the graph that come on that side.
  Ticks time(Side side) const { return times_[static_cast<std::size_t>(side)]; }
  // Whether what is not kept may be on the host.
  bool hosts() const { return hosts_; }

  MaxFlow& flow() { return flow_; }
  const MaxFlow& flow() const { return flow_; }
  // No capacities but the unbounded ones: whoever runs again needs its inputs.
  void clear();
  void grow_price(const Choice& choice, std::int64_t by);
  // Of the cut of the last run.
  bool runs_again(std::size_t op) const {
    return flow_.on_source_side(static_cast<std::int32_t>(op));
  }
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

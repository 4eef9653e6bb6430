// The rules of docs/reference/cost.md on sets of ops and of tensors, one bit each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::exhaustive {

using Mask = std::uint64_t;
inline constexpr std::size_t kMostOps = 16;
inline constexpr std::size_t kMostTensors = 48;  // that a plan makes or may free
constexpr Mask bit(std::size_t i) { return Mask{1} << i; }

struct OpRules {
  Mask needs = 0, makes = 0;  // tensors
  Mask after = 0;             // ops that must have been computed
  Mask barred_by = 0;         // ops after which it may not run
  bool again = true;
  Ticks time;
  Bytes bytes;  // outputs and workspace
  // For each output that may overwrite inputs: these inputs.
  struct Place {
    Mask inputs;
    Bytes bytes;
  };
  std::vector<Place> places;

  // The bytes that it saves in place if these tensors are freed with it.
  Bytes overwritten(Mask gone) const;
};

// Tensors that a plan makes or may free have a bit; tensors that are always live have none.
struct Rules {
  static bool hold(const Graph& graph);  // whether there are few enough ops and tensors
  explicit Rules(const Problem& problem);

  bool may_compute(std::size_t op, Mask computed, Mask live) const;
  // The live tensors, without those that no op may read any more and the graph does not keep.
  Mask without_dead(Mask live, Mask computed) const;
  // Those of the tensors that a first computation still needs, or the graph keeps, and that cannot
  // be recomputed.
  Mask irreplaceable(Mask tensors, Mask computed) const;
  Bytes live_bytes(Mask live) const;
  bool fits(Mask live) const { return live_bytes(live) <= budget; }
  bool ends(Mask live) const { return (kept & ~live) == 0; }

  std::vector<OpRules> ops;
  std::vector<Bytes> bytes;  // by tensor
  std::vector<Mask> readers;
  std::vector<std::size_t> maker;  // SIZE_MAX: an input
  Mask kept = 0, start = 0;
  Bytes always, budget;
  std::vector<std::size_t> turn;  // the op at each position of the given order; empty: any order

 private:
  bool may_run(std::size_t op, Mask computed) const {
    return (ops[op].barred_by & computed) == 0 && ((computed & bit(op)) == 0 || ops[op].again);
  }
};

}  // namespace lowtide::solve::exhaustive

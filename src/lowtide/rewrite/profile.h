// The memory profile of the unplanned step, and an estimate of the time to bring it down to a
// budget, in one pass.
//
// Every tensor is an interval of the order. For a region in parts only the last part is modelled:
// part-sized tensors beside the assembled results of the parts before. So any number of parts is
// estimated without building the graph.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"

namespace lowtide::rewrite {

// Live from the place `first` in the order to the place `last`.
struct Interval {
  std::size_t first = 0, last = 0;
  Bytes bytes;
  Ticks again;           // of computing once more what it holds, all parts of it
  bool may_go = false;   // could be computed again
  TensorId tensor = {};  // of the graph
};

struct Profile {
  std::vector<Interval> intervals;
  std::vector<Bytes> live;  // at each place, what the op takes there with it
  std::vector<OpId> order;  // the op at each place
  Ticks time;               // of all ops, all parts, and what puts them together
  std::size_t fullest = 0;  // the place of the peak

  Bytes peak() const { return live.empty() ? Bytes(0) : live[fullest]; }
  // The fullest place of each of so many equal shares of the order.
  std::vector<std::size_t> fullest_by_share(std::size_t shares) const;
};

// In the graph's own order, every tensor freed after its last use; ops write in place where they
// may. Linear.
Profile profile_of(const Graph& graph);
// Adds up `live` from `intervals`; `extra`: what ops take beside them, at each place. OverflowError
// beyond 63 bits.
void sum_up(Profile& profile, std::vector<std::int64_t> extra);

// What must be given up at the fullest places so that a budget is kept, by the cheapest to compute
// again for their bytes; each by itself, without what its own inputs would need. With links what
// can leave before and come back after a place goes first and takes no time.
struct Shortfall {
  Ticks again;    // computed more, at the place where that is most
  Bytes missing;  // that nothing gives
};
Shortfall shortfall(const Graph& graph, const Profile& profile, Bytes budget,
                    const std::optional<Machine>& machine);

}  // namespace lowtide::rewrite

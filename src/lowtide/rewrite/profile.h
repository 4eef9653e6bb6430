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

// Live from position `first` of the order to position `last`.
struct Interval {
  std::size_t first = 0, last = 0;
  Bytes bytes;
  Ticks again;           // time of recomputing its contents, all parts
  bool may_go = false;   // whether it can be recomputed
  TensorId tensor = {};  // in the graph
};

struct Profile {
  std::vector<Interval> intervals;
  std::vector<Bytes> live;  // bytes at each position, with those that the op takes
  std::vector<OpId> order;  // the op at each position
  Ticks time;               // of all ops, all parts, and the joins
  std::size_t fullest = 0;  // position of the peak

  Bytes peak() const { return live.empty() ? Bytes(0) : live[fullest]; }
  // The highest position of each of so many equal shares of the order.
  std::vector<std::size_t> fullest_by_share(std::size_t shares) const;
};

// The profile of the given order, with every tensor freed after its last use, and ops in place if
// possible. Linear.
Profile profile_of(const Graph& graph);
// Computes `live` from `intervals`; `extra`: other bytes of ops, at each position. Throws
// OverflowError beyond 63 bits.
void sum_up(Profile& profile, std::vector<std::int64_t> extra);

// An estimate of the evictions at the highest positions that keep a budget, the cheapest per byte
// first; each tensor separately, without the recomputation of its inputs. With links, tensors that
// can be copied out before and back after a position come first and take no time.
struct Shortfall {
  Ticks again;    // largest recomputation over the positions
  Bytes missing;  // bytes that cannot be evicted
};
Shortfall shortfall(const Graph& graph, const Profile& profile, Bytes budget,
                    const std::optional<Machine>& machine);

}  // namespace lowtide::rewrite

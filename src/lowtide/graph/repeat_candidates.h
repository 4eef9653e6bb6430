// Where equal blocks may be, judged by the ops' labels alone. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

// A sequence that goes on as it did `period` positions before: [first, last) of the given order.
struct Run {
  std::size_t first, last, period;
};
// Equal stretches of the given order, disjoint, ascending.
struct Stretches {
  std::size_t length;
  std::vector<std::size_t> starts;
};
// Positions in the given order, ascending, of the ops of each origin that is called alike.
struct Family {
  std::vector<std::vector<std::size_t>> members;
};

struct Candidates {
  std::vector<Run> runs;
  std::vector<Stretches> stretches;
  std::vector<Family> families;
};

// `labels` in the given order. Nothing that covers fewer than `least` ops.
Candidates find_candidates(const Graph& graph, const std::vector<std::uint64_t>& labels,
                           std::size_t least);

}  // namespace lowtide

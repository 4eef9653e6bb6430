// Finds candidates for equal blocks by the labels of ops alone. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

// A periodic stretch [first, last) of the given order: each label equals the one `period` positions
// before.
struct Run {
  std::size_t first, last, period;
};
// Equal stretches of the given order, disjoint, ascending.
struct Stretches {
  std::size_t length;
  std::vector<std::size_t> starts;
};
// Origins with the same pattern: for each, the positions of its ops in the given order, ascending.
struct Family {
  std::vector<std::vector<std::size_t>> members;
};

struct Candidates {
  std::vector<Run> runs;
  std::vector<Stretches> stretches;
  std::vector<Family> families;
};

// `labels`: by position in the given order. Omits candidates that cover fewer than `least` ops.
Candidates find_candidates(const Graph& graph, const std::vector<std::uint64_t>& labels,
                           std::size_t least);

}  // namespace lowtide

// Descriptions of repeated blocks. Used by report.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::report {

// Equal blocks of ops, as repeated_blocks (graph/repeats.h) finds them.
struct Repetition {
  std::size_t times = 0, ops = 0;  // blocks; ops in each
  double share_of_ops = 0;         // of all blocks, 0 to 1
  double share_of_time = 0;        // of computing each op once, 0 to 1
  std::string phase;               // empty if the phases of a block's ops differ
  std::string where;               // "layers.*": the origin that the ops share; or
                                   // "from op 3 "mm_3"", the first op of the first block
};

// The largest first.
std::vector<Repetition> repetitions(const Graph& graph);

}  // namespace lowtide::report

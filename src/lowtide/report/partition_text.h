// A partition as text: its levels, and its most frequent blocks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"
#include "lowtide/report/partition_summary.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// The block's name or, if it has none, the origin or name of its first op.
std::string block_name(const Graph& graph, const Partition& partition, BlockId id);

// At most `most` levels and `most` kinds of equal blocks, those with most ops first. `how`: the
// partitioner, and the time that it took.
std::string partition_text(const Graph& graph, const Partition& partition,
                           const PartitionSummary& summary, std::string_view how, std::size_t most,
                           const TerminalStyle& style);

}  // namespace lowtide::report

// A partition as text: its levels, and which blocks there are most of.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"
#include "lowtide/report/partition_summary.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// Its own name, or that of where it begins: the origin or name of its first op.
std::string block_name(const Graph& graph, const Partition& partition, BlockId id);

// At most `most` levels and `most` kinds of equal blocks, those with the most ops first. `how`: by
// which partitioner, and how long it took.
std::string partition_text(const Graph& graph, const Partition& partition,
                           const PartitionSummary& summary, std::string_view how, std::size_t most,
                           const TerminalStyle& style);

}  // namespace lowtide::report

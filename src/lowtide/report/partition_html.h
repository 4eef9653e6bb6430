// A partition as a self-contained page: no network, no other files.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"
#include "lowtide/report/partition_summary.h"

namespace lowtide::report {

// `how` as in partition_text.h.
std::string html_partition(const Graph& graph, const Partition& partition,
                           const PartitionSummary& summary, std::string_view how);

}  // namespace lowtide::report

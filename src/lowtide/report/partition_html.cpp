// The page is partition_page.html with the style, the scripts and the data put into it; see page.h.
#include "lowtide/report/partition_html.h"

#include <nlohmann/json.hpp>

#include "lowtide/report/page.h"
#include "lowtide/report/partition_text.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_page.h"

namespace lowtide::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestTitle = 160, kMostRows = 30;

Json blocks_json(const Graph& graph, const Partition& partition, const PartitionSummary& summary) {
  Json blocks = Json::array();
  for (const BlockId id : partition.blocks.ids()) {
    const Block& block = partition.blocks[id];
    const bool is_root = id == Partition::root();
    blocks.push_back({is_root ? Json() : Json(block.parent.index()), summary.level[id],
                      shorten(block_name(graph, partition, id), kLongestTitle), block.forward.first,
                      block.forward.last, block.backward.first, block.backward.last,
                      summary.alike[id].index(), summary.children[id],
                      interface_bytes(graph, block).count(), block.saved_bytes.count()});
  }
  return blocks;
}

}  // namespace

std::string html_partition(const Graph& graph, const Partition& partition,
                           const PartitionSummary& summary, std::string_view how) {
  Json levels = Json::array();
  for (const PartitionLevel& level : summary.levels)
    levels.push_back({level.blocks, level.unique, level.largest, level.ops, level.interface.count(),
                      level.saved.count()});
  const Json data = {{"name", shorten(graph.name(), kLongestTitle)},
                     {"tick", to_string(graph.tick())},
                     {"how", how},
                     {"opCount", graph.op_count()},
                     {"hasBackward", partition.phases.has_backward},
                     {"largest", summary.largest},
                     {"top", summary.top},
                     {"crossing", summary.interface.count()},
                     {"widest", summary.widest.count()},
                     {"levels", levels},
                     {"blocks", blocks_json(graph, partition, summary)}};
  const std::string name = graph.name().empty() ? "Graph" : shorten(graph.name(), kLongestTitle);
  return make_page({.title = name + ": blocks",
                    .text = partition_text(graph, partition, summary, how, kMostRows,
                                           TerminalStyle{.width = 100}),
                    .main = kPartitionMain,
                    .style = std::string(kPartitionStyle),
                    .data = data.dump(-1, ' ', false, Json::error_handler_t::replace),
                    .script = std::string(kPartitionScript)});
}

}  // namespace lowtide::report

#include "lowtide/report/partition_text.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "lowtide/report/graph_text.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

std::string number(std::size_t count) { return count_text(static_cast<std::int64_t>(count)); }

std::string plural(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", number(count), word, count == 1 ? "" : "s");
}

void add_row(std::vector<TableColumn>& columns, std::span<const std::string> cells) {
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
}

std::string levels_table(const PartitionSummary& summary, std::size_t most,
                         const TerminalStyle& style) {
  std::vector<TableColumn> columns = {{.title = "level", .align = Align::right},
                                      {.title = "blocks", .align = Align::right},
                                      {.title = "unique", .align = Align::right},
                                      {.title = "largest", .align = Align::right},
                                      {.title = "ops", .align = Align::right, .rank = 1},
                                      {.title = "interface", .align = Align::right, .rank = 2},
                                      {.title = "saved", .align = Align::right, .rank = 3}};
  for (std::size_t i = 0; i < std::min(most, summary.levels.size()); ++i) {
    const PartitionLevel& level = summary.levels[i];
    const std::string cells[] = {number(i + 1),          number(level.blocks),
                                 number(level.unique),   number(level.largest),
                                 number(level.ops),      bytes_text(level.interface),
                                 bytes_text(level.saved)};
    add_row(columns, cells);
  }
  return draw_table(std::move(columns), style);
}

struct Kind {
  BlockId first;
  std::size_t times = 0;
};

std::vector<Kind> kinds_of(const Partition& partition, const PartitionSummary& summary) {
  IdVector<BlockId, std::size_t> times(partition.blocks.size(), 0);
  for (const BlockId id : partition.blocks.ids()) ++times[summary.alike[id]];
  std::vector<Kind> kinds;
  for (const BlockId id : partition.blocks.ids())
    if (id != Partition::root() && times[id] > 0) kinds.push_back({id, times[id]});
  std::ranges::stable_sort(kinds, std::ranges::greater(), [&](const Kind& kind) {
    return kind.times * partition.blocks[kind.first].op_count();
  });
  return kinds;
}

std::string kinds_table(const Graph& graph, const Partition& partition,
                        const PartitionSummary& summary, std::span<const Kind> kinds,
                        const TerminalStyle& style) {
  std::vector<TableColumn> columns = {{.title = "block", .align = Align::right},
                                      {.title = "begins at", .flexible = true},
                                      {.title = "times", .align = Align::right},
                                      {.title = "children", .align = Align::right},
                                      {.title = "forward", .align = Align::right, .rank = 3},
                                      {.title = "backward", .align = Align::right, .rank = 3},
                                      {.title = "interface", .align = Align::right, .rank = 1},
                                      {.title = "saved", .align = Align::right, .rank = 2}};
  for (const Kind& kind : kinds) {
    const Block& block = partition.blocks[kind.first];
    const std::string cells[] = {number(kind.first.index()),
                                 block_name(graph, partition, kind.first),
                                 number(kind.times),
                                 number(summary.children[kind.first]),
                                 number(block.forward.op_count()),
                                 number(block.backward.op_count()),
                                 bytes_text(interface_bytes(graph, block)),
                                 bytes_text(block.saved_bytes)};
    add_row(columns, cells);
  }
  return draw_table(std::move(columns), style);
}

std::string more(std::size_t shown, std::size_t all) {
  if (shown >= all) return {};
  return fmt::format("  {} more; --most {} shows all\n", number(all - shown), all);
}

}  // namespace

std::string block_name(const Graph& graph, const Partition& partition, BlockId id) {
  const Block& block = partition.blocks[id];
  if (!block.name.empty()) return block.name;
  const Half& half = block.forward.empty() ? block.backward : block.forward;
  if (half.empty()) return {};  // the root of a graph without ops
  const Op& op = graph.op(partition.ops(half).front());
  const std::string& said = op.origin.empty() ? op.name : op.origin;
  return said.empty() ? fmt::format("op {}", partition.ops(half).front().index()) : said;
}

std::string partition_text(const Graph& graph, const Partition& partition,
                           const PartitionSummary& summary, std::string_view how, std::size_t most,
                           const TerminalStyle& style) {
  std::string out;
  const auto line = [&](std::string_view head, std::string_view text) {
    out += fmt::format("{:<10} {}\n", head, shorten(text, style.width - 11, style.unicode));
  };
  line("graph", graph_text(graph, style.width - 11, style.unicode));
  line("partition", fmt::format("{}, {}, {} unique", plural(summary.levels.size(), "level"),
                                plural(partition.blocks.size(), "block"), number(summary.unique)));
  line("by", how);
  line("largest",
       fmt::format("{}; {} in the root",
                   summary.largest == 1 ? "1 child" : number(summary.largest) + " children",
                   number(summary.top)));
  line("interface", fmt::format("{} in all, {} of the widest block", bytes_text(summary.interface),
                                bytes_text(summary.widest)));
  out += "\nLevels\n" + levels_table(summary, most, style) + more(most, summary.levels.size());
  const std::vector<Kind> kinds = kinds_of(partition, summary);
  if (kinds.empty()) return out;
  const std::size_t shown = std::min(most, kinds.size());
  out += "\nBlocks, equal ones together\n" +
         kinds_table(graph, partition, summary, std::span(kinds).first(shown), style) +
         more(shown, kinds.size());
  return out;
}

}  // namespace lowtide::report

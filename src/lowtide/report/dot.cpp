// Names go into quoted strings, where DOT knows three escapes: \" \\ and \n.
#include "lowtide/report/dot.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

// Control characters would end up in the picture or break the line; bytes beyond ASCII pass.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out;
}

// Lines of a label; empty ones fall away.
template <class... Lines>
std::string label(const Lines&... lines) {
  std::string out;
  const auto add = [&](const std::string& line) {
    if (line.empty()) return;
    if (!out.empty()) out += "\\n";
    out += escaped(line);
  };
  (add(lines), ...);
  return out;
}

void op_line(const Graph& graph, OpId id, std::string& out) {
  const Op& op = graph.op(id);
  const std::string workspace =
      op.workspace.count() > 0 ? "workspace " + bytes_text(op.workspace) : std::string();
  fmt::format_to(std::back_inserter(out), "  op{} [label=\"{}\"{}];\n", id.index(),
                 label(op.name.empty() ? "op " + std::to_string(id.index()) : op.name,
                       op.kind == op.name ? std::string() : op.kind,
                       ticks_text(op.time, graph.tick()), workspace),
                 graph.recomputable(id) ? "" : ", style=bold");
}

// The ops of one half of all blocks, on a stack of our own, as blocks may be deep.
void half_lines(const Graph& graph, const Partition& partition, Half Block::*side,
                std::string_view word, std::string& out) {
  std::vector<std::pair<BlockId, std::size_t>> open{{Partition::root(), 0}};
  while (!open.empty()) {
    auto& [id, next] = open.back();
    const Half& half = partition.blocks[id].*side;
    if (next == half.parts.size()) {
      if (id != Partition::root()) out += "  }\n";
      open.pop_back();
      continue;
    }
    const BlockPart part = half.parts[next++];
    if (part.op.valid()) {
      op_line(graph, part.op, out);
      continue;
    }
    const std::string& name = partition.blocks[part.block].name;
    fmt::format_to(std::back_inserter(out), "  subgraph cluster_{}_{} {{\n  label=\"{}\";\n",
                   part.block.index(), word,
                   label(name.empty() ? fmt::format("block {}", part.block.index()) : name,
                         partition.phases.has_backward ? std::string(word) : std::string()));
    open.emplace_back(part.block, 0);
  }
}

std::string dot_text(const Graph& graph, const Partition* partition) {
  std::string out;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    out += '\n';
  };
  const auto sized = [&](TensorId id) {
    return label(graph.tensor(id).name, bytes_text(graph.bytes(id)));
  };
  line("digraph \"{}\" {{", escaped(graph.name()));
  line("  node [shape=box];");
  if (partition == nullptr) {
    for (std::size_t i = 0; i < graph.op_count(); ++i) op_line(graph, OpId(i), out);
  } else {
    half_lines(graph, *partition, &Block::forward, "forward", out);
    half_lines(graph, *partition, &Block::backward, "backward", out);
  }
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.is_input(id) && !graph.is_output(id)) continue;
    line("  tensor{} [shape=ellipse, label=\"{}\"{}];", i, sized(id),
         graph.is_output(id) ? ", peripheries=2" : "");
    if (!graph.is_input(id)) line("  op{} -> tensor{};", graph.producer(id).index(), i);
  }
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId id(i);
    for (TensorId input : graph.inputs(id)) {
      const auto changed = graph.mutates(id);
      const bool mutates = std::find(changed.begin(), changed.end(), input) != changed.end();
      if (graph.is_input(input)) {
        line("  tensor{} -> op{}{};", input.index(), i, mutates ? " [color=red]" : "");
      } else {
        line("  op{} -> op{} [label=\"{}\"{}];", graph.producer(input).index(), i, sized(input),
             mutates ? ", color=red" : "");
      }
    }
    for (OpId before : graph.after(id)) line("  op{} -> op{} [style=dashed];", before.index(), i);
  }
  out += "}\n";
  return out;
}

}  // namespace

std::string write_dot(const Graph& graph) { return dot_text(graph, nullptr); }

std::string write_dot(const Graph& graph, const Partition& partition) {
  return dot_text(graph, &partition);
}

}  // namespace lowtide::report

// Two passes over the links.
#include "lowtide/solve/kumar/common/op_graph.h"

#include <algorithm>

namespace lowtide::solve::kumar {

OpGraph::OpGraph(const Graph& graph, bool spine) {
  std::vector<OpId> row;
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    row.clear();
    for (TensorId input : graph.inputs(op))
      if (!graph.is_input(input)) row.push_back(graph.producer(input));
    if (const std::size_t at = graph.position(op); spine && at > 0)
      row.push_back(graph.order()[at - 1]);
    std::sort(row.begin(), row.end(),
              [&](OpId a, OpId b) { return graph.position(a) < graph.position(b); });
    row.erase(std::unique(row.begin(), row.end()), row.end());
    for (OpId maker : row) makers.push(maker);
    makers.end_row();
    bool is_final = true;
    for (TensorId output : graph.outputs(op)) is_final &= graph.consumers(output).empty();
    for (TensorId output : graph.outputs(op)) is_final |= graph.is_output(output);
    if (is_final) finals.push_back(op);
  }
}

std::vector<std::int32_t> positions_of(const Graph& graph) {
  std::vector<std::int32_t> positions;
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    positions.push_back(static_cast<std::int32_t>(graph.position(OpId(i))));
  return positions;
}

Neighbours undirected(const OpGraph& graph) {
  Neighbours neighbours(graph.makers.rows());
  for (std::size_t i = 0; i < neighbours.size(); ++i)
    for (OpId maker : graph.makers[i]) {
      neighbours[i].push_back(static_cast<std::int32_t>(maker.index()));
      neighbours[maker.index()].push_back(static_cast<std::int32_t>(i));
    }
  for (auto& row : neighbours) {
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
  }
  return neighbours;
}

}  // namespace lowtide::solve::kumar

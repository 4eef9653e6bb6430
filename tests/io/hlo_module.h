// Modules of HLO for tests, written short.
#pragma once

#include <string>
#include <vector>

#include "lowtide/io/graph_json.h"

namespace lowtide {

// A scheduled module: computations before the entry, and the entry's instructions.
inline std::string hlo_module(const std::string& entry, const std::string& before = {},
                              const std::string& attributes = {}) {
  return "HloModule test, is_scheduled=true" + attributes + "\n\n" + before + "\nENTRY %main {\n" +
         entry + "\n}\n";
}

inline Graph hlo_graph(const std::string& text, const io::HloOptions& options = {}) {
  return io::read_graph_text(text, "module.hlo.txt", options).graph;
}

// By name; fails a check of the graph if there is none.
inline OpId op_named(const Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    if (graph.op(OpId(i)).name == name) return OpId(i);
  return OpId();
}
inline TensorId tensor_named(const Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.tensor(TensorId(i)).name == name) return TensorId(i);
  return TensorId();
}
inline std::vector<std::string> input_names(const Graph& graph, OpId op) {
  std::vector<std::string> names;
  for (const TensorId id : graph.inputs(op)) names.push_back(graph.tensor(id).name);
  return names;
}
// "input->output" for each pair.
inline std::vector<std::string> pair_names(const Graph& graph, OpId op) {
  std::vector<std::string> names;
  for (const InPlacePair& pair : graph.in_place(op))
    names.push_back(graph.tensor(pair.input).name + "->" + graph.tensor(pair.output).name);
  return names;
}

}  // namespace lowtide

// lowtide/graph/graph.h, and the files of it.
#include "lowtide/graph/graph.h"

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/hash.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/dot.h"
#include "lowtide/sim/simulate.h"

#include "convert.h"
#include "document.h"
#include "objects.h"

namespace lowtide::python {

namespace {

struct OpObject {
  GraphObject graph;
  OpId id;
  const Op& op() const { return graph->op(id); }
};
struct TensorObject {
  GraphObject graph;
  TensorId id;
  const Tensor& tensor() const { return graph->tensor(id); }
};

template <class Ids>
nb::list indices(const Ids& ids) {
  nb::list list;
  for (const auto id : ids) list.append(id.index());
  return list;
}

std::size_t checked_index(std::int64_t index, std::size_t count) {
  const auto size = static_cast<std::int64_t>(count);
  if (index < 0) index += size;
  if (index < 0 || index >= size) throw nb::index_error();
  return static_cast<std::size_t>(index);
}

GraphObject read_text(std::string_view text, const std::string& name) {
  std::optional<io::GraphFile> file;
  {
    const nb::gil_scoped_release released;
    file = io::read_graph_text(text, name);
  }
  warn(name, file->warnings);
  return make_graph(std::move(file->graph));
}

GraphObject load(nb::handle path) {
  const std::string name = path_of(path);
  std::optional<io::GraphFile> file;
  {
    const nb::gil_scoped_release released;
    file = io::read_graph(name);
  }
  warn(io::name_of_file(name), file->warnings);
  return make_graph(std::move(file->graph));
}

GraphObject from_json(nb::handle text, const std::string& name) {
  return read_text(text_or_bytes(text), name);
}

GraphObject from_dict(nb::handle dict) {
  const std::string name = "<dict>";
  std::optional<io::GraphFile> file;
  try {
    const io::JsonDocument document = document_of(dict);
    const nb::gil_scoped_release released;
    file = io::read_graph_document(document, name);
  } catch (const InputError& error) {
    throw error.in_file(name);
  }
  warn(name, file->warnings);
  return make_graph(std::move(file->graph));
}

void save(const GraphObject& graph, nb::handle path) {
  const std::string name = path_of(path);
  const nb::gil_scoped_release released;
  io::write_text_file(name, io::write_graph(*graph));
}

std::int64_t own_peak_of(const GraphObject& graph) {
  if (!graph.own_peak) graph.own_peak = own_peak(*graph);
  return graph.own_peak->count();
}

void bind_op(nb::module_& module) {
  nb::class_<OpObject>(module, "Op", "One operation of a graph.")
      .def_prop_ro("index", [](const OpObject& o) { return o.id.index(); })
      .def_prop_ro("name", [](const OpObject& o) { return o.op().name; })
      .def_prop_ro("kind", [](const OpObject& o) { return o.op().kind; })
      .def_prop_ro("phase", [](const OpObject& o) { return o.op().phase; })
      .def_prop_ro("origin", [](const OpObject& o) { return o.op().origin; })
      .def_prop_ro(
          "attributes", [](const OpObject& o) { return o.op().attributes; },
          "A JSON object as text, or empty.")
      .def_prop_ro(
          "time", [](const OpObject& o) { return o.op().time.count(); }, "In ticks.")
      .def_prop_ro(
          "workspace", [](const OpObject& o) { return o.op().workspace.count(); },
          "Bytes needed only while it runs.")
      .def_prop_ro(
          "recomputable", [](const OpObject& o) { return o.graph->recomputable(o.id); },
          "Whether a plan may compute it more than once.")
      .def_prop_ro(
          "lane", [](const OpObject& o) { return to_string(o.op().lane); },
          "\"compute\" or \"network\": where its time passes.")
      .def_prop_ro(
          "inputs", [](const OpObject& o) { return indices(o.graph->inputs(o.id)); },
          nb::sig("def inputs(self) -> list[int]"), "Indices of tensors.")
      .def_prop_ro(
          "outputs", [](const OpObject& o) { return indices(o.graph->outputs(o.id)); },
          nb::sig("def outputs(self) -> list[int]"), "Indices of tensors.")
      .def_prop_ro(
          "after", [](const OpObject& o) { return indices(o.graph->after(o.id)); },
          nb::sig("def after(self) -> list[int]"),
          "Indices of ops whose first computation must precede its first.")
      .def_prop_ro(
          "mutates", [](const OpObject& o) { return indices(o.graph->mutates(o.id)); },
          nb::sig("def mutates(self) -> list[int]"), "Indices of inputs that it changes in place.")
      .def_prop_ro(
          "in_place",
          [](const OpObject& o) {
            nb::list pairs;
            for (const InPlacePair& pair : o.graph->in_place(o.id))
              pairs.append(nb::make_tuple(pair.input.index(), pair.output.index()));
            return pairs;
          },
          nb::sig("def in_place(self) -> list[tuple[int, int]]"),
          "Pairs of an input and an output that may overwrite it.")
      .def_prop_ro(
          "operands", [](const OpObject& o) { return operand_list(o.op().operands); },
          nb::sig("def operands(self) -> list[dict[str, typing.Any]]"),
          "Tensor arguments as the op sees them, as in a graph file.")
      .def_prop_ro(
          "results", [](const OpObject& o) { return operand_list(o.op().results); },
          nb::sig("def results(self) -> list[dict[str, typing.Any]]"),
          "Results as the op sees them, as in a graph file.")
      .def_prop_ro(
          "arguments", [](const OpObject& o) { return argument_dict(o.op().arguments); },
          nb::sig("def arguments(self) -> dict[str, typing.Any]"),
          "Literal arguments by their names; a number type is {\"dtype\": name}.")
      .def("__repr__",
           [](const OpObject& o) { return "<lowtide.Op: " + o.graph->label(o.id) + ">"; });
}

void bind_tensor(nb::module_& module) {
  nb::class_<TensorObject>(module, "Tensor", "One storage of a graph.")
      .def_prop_ro("index", [](const TensorObject& t) { return t.id.index(); })
      .def_prop_ro("name", [](const TensorObject& t) { return t.tensor().name; })
      .def_prop_ro("bytes", [](const TensorObject& t) { return t.tensor().bytes.count(); })
      .def_prop_ro(
          "role", [](const TensorObject& t) { return to_string(t.tensor().role); },
          "\"input\", \"parameter\", \"state\", \"constant\", \"activation\" or \"gradient\".")
      .def_prop_ro(
          "releasable", [](const TensorObject& t) { return t.graph->releasable(t.id); },
          "Whether it is an input that a plan may free.")
      .def_prop_ro(
          "stays", [](const TensorObject& t) { return t.graph->stays(t.id); },
          "Whether the caller holds it: it may be copied, never freed.")
      .def_prop_ro(
          "home", [](const TensorObject& t) { return to_string(t.tensor().home); },
          "\"device\" or \"host\": its place before the first step.")
      .def_prop_ro("shape", [](const TensorObject& t) { return t.tensor().shape; })
      .def_prop_ro("dtype", [](const TensorObject& t) { return t.tensor().dtype; })
      .def_prop_ro(
          "producer",
          [](const TensorObject& t) -> nb::object {
            const OpId op = t.graph->producer(t.id);
            return op.valid() ? nb::object(nb::int_(op.index())) : nb::object(nb::none());
          },
          nb::sig("def producer(self) -> int | None"), "Index of the op that makes it, or None.")
      .def_prop_ro(
          "consumers", [](const TensorObject& t) { return indices(t.graph->consumers(t.id)); },
          nb::sig("def consumers(self) -> list[int]"), "Indices of the ops that read it.")
      .def_prop_ro(
          "is_output", [](const TensorObject& t) { return t.graph->is_output(t.id); },
          "Whether it must be live at the end.")
      .def("__repr__",
           [](const TensorObject& t) { return "<lowtide.Tensor: " + t.graph->label(t.id) + ">"; });
}

OpObject op_at(const GraphObject& g, std::int64_t index) {
  return {g, OpId(checked_index(index, g->op_count()))};
}
TensorObject tensor_at(const GraphObject& g, std::int64_t index) {
  return {g, TensorId(checked_index(index, g->tensor_count()))};
}

}  // namespace

const std::string& graph_hash_of(const GraphObject& graph) {
  if (graph.hash.empty()) graph.hash = graph_hash(*graph);
  return graph.hash;
}

GraphObject make_graph(Graph graph) { return {std::make_shared<const Graph>(std::move(graph))}; }

void bind_graph(nb::module_& module) {
  bind_op(module);
  bind_tensor(module);
  nb::class_<GraphObject> graph(module, "Graph",
                                "A computation graph of ops and tensors. Immutable.\n\nBytes and "
                                "ticks are int; `tick` is the unit of a tick.");
  graph
      .def_static("load", &load, nb::arg("path"),
                  nb::sig("def load(path: str | os.PathLike[str]) -> Graph"),
                  "Read a graph file (ours, networkx node-link or HLO text, plain or gzip; \"-\" "
                  "is standard "
                  "input).\n\nRaises Error, naming file, place and op or tensor; unknown keys give "
                  "a UserWarning.")
      .def_static("from_json", &from_json, nb::arg("text"), nb::arg("name") = "<text>",
                  nb::sig("def from_json(text: str | bytes, name: str = \"<text>\") -> Graph"),
                  "Read a graph from the text of a file; errors call it `name`.")
      .def_static("from_dict", &from_dict, nb::arg("graph"),
                  nb::sig("def from_dict(graph: dict[str, typing.Any]) -> Graph"),
                  "Make a graph from a dict with the content of a graph file.")
      .def("save", &save, nb::arg("path"),
           nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
           "Write a graph file, compressed if the path ends in .gz.")
      .def(
          "to_json", [](const GraphObject& g) { return io::write_graph(*g); },
          nb::call_guard<nb::gil_scoped_release>(), "The text of the graph's file.")
      .def(
          "to_dict",
          [](const GraphObject& g) {
            return nb::module_::import_("json").attr("loads")(io::write_graph(*g));
          },
          nb::sig("def to_dict(self) -> dict[str, typing.Any]"),
          "The content of the graph's file, as a dict.")
      .def(
          "to_dot", [](const GraphObject& g) { return report::write_dot(*g); },
          nb::call_guard<nb::gil_scoped_release>(), "A picture of it as text for Graphviz.")
      .def_prop_ro("name", [](const GraphObject& g) { return g->name(); })
      .def_prop_ro("num_ops", [](const GraphObject& g) { return g->op_count(); })
      .def_prop_ro("num_tensors", [](const GraphObject& g) { return g->tensor_count(); })
      .def_prop_ro(
          "duration", [](const GraphObject& g) { return own_duration(*g).count(); },
          "Ticks of computing each op once, in the given order.")
      .def_prop_ro("own_peak", &own_peak_of,
                   "The baseline peak in bytes: of the given order, each tensor freed as early as "
                   "possible. Budgets in per cent are shares of it.")
      .def_prop_ro(
          "resident_bytes", [](const GraphObject& g) { return g->resident().count(); },
          "Bytes that are always live and belong to no tensor.")
      .def_prop_ro(
          "input_bytes", [](const GraphObject& g) { return g->input_bytes().count(); },
          "Bytes of all tensors that no op produces.")
      .def_prop_ro(
          "tick", [](const GraphObject& g) { return to_string(g->tick()); },
          "Unit of a tick: \"ns\", \"us\", \"ms\", \"flop\" or \"none\".")
      .def_prop_ro("hash", &graph_hash_of,
                   "\"sha256:...\" of everything that planning depends on; names are not hashed.")
      .def("op", &op_at, nb::arg("index"))
      .def("tensor", &tensor_at, nb::arg("index"))
      .def_prop_ro(
          "ops",
          [](const GraphObject& g) {
            nb::list list;
            for (std::size_t i = 0; i < g->op_count(); ++i) list.append(OpObject{g, OpId(i)});
            return list;
          },
          nb::sig("def ops(self) -> list[Op]"), "A new list of all ops.")
      .def_prop_ro(
          "tensors",
          [](const GraphObject& g) {
            nb::list list;
            for (std::size_t i = 0; i < g->tensor_count(); ++i)
              list.append(TensorObject{g, TensorId(i)});
            return list;
          },
          nb::sig("def tensors(self) -> list[Tensor]"), "A new list of all tensors.")
      .def_prop_ro(
          "outputs", [](const GraphObject& g) { return indices(g->outputs()); },
          nb::sig("def outputs(self) -> list[int]"), "Indices of tensors live at the end.")
      .def_prop_ro(
          "order", [](const GraphObject& g) { return indices(g->order()); },
          nb::sig("def order(self) -> list[int]"), "Indices of all ops in the given order.")
      .def("__getstate__", [](const GraphObject& g) { return io::write_graph(*g); })
      .def("__setstate__",
           [](GraphObject* self, const std::string& text) {
             new (self) GraphObject(make_graph(io::read_graph_text(text, "<pickle>").graph));
           })
      .def("__repr__", [](const GraphObject& g) {
        return fmt::format("<lowtide.Graph {}: {} ops, {} tensors>",
                           nb::repr(nb::str(g->name().c_str(), g->name().size())).c_str(),
                           g->op_count(), g->tensor_count());
      });
  bind_blocks(graph);
  bind_repeats(module, graph);
  bind_dimensions(module, graph);
  bind_edited(graph);
  bind_regions(graph);
  bind_substitution_rules(module);
}

}  // namespace lowtide::python

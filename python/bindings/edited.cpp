// lowtide/graph/builder.h: a graph that is another one but for what is said.
#include <array>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"

#include "objects.h"

namespace lowtide::python {

namespace {

using Indices = std::vector<std::int64_t>;

template <class Ids>
Indices copied(const Ids& ids) {
  Indices found;
  found.reserve(ids.size());
  for (const auto id : ids) found.push_back(static_cast<std::int64_t>(id.index()));
  return found;
}

Role role_named(const std::string& word) {
  for (const Role role : {Role::input, Role::parameter, Role::state, Role::constant,
                          Role::activation, Role::gradient})
    if (to_string(role) == word) return role;
  throw nb::value_error(("role: unknown word \"" + word + "\"").c_str());
}

Lane lane_named(const std::string& word) {
  for (const Lane lane : {Lane::compute, Lane::network})
    if (to_string(lane) == word) return lane;
  throw nb::value_error(("lane: unknown word \"" + word + "\"").c_str());
}

// Calls `set(key, value)` for each entry of a dict; one that it does not know is refused.
template <class Set>
void each(nb::handle changes, const char* what, Set set) {
  for (const auto& [key, value] : nb::cast<nb::dict>(changes)) {
    const auto name = nb::cast<std::string>(key);
    if (!set(name, value))
      throw nb::value_error(
          (std::string(what) + " has no \"" + name + "\" that can be edited").c_str());
  }
}

void edit(Tensor& tensor, nb::handle changes) {
  each(changes, "a tensor", [&](const std::string& key, nb::handle value) {
    if (key == "name")
      tensor.name = nb::cast<std::string>(value);
    else if (key == "bytes")
      tensor.bytes = Bytes(nb::cast<std::int64_t>(value));
    else if (key == "role")
      tensor.role = role_named(nb::cast<std::string>(value));
    else if (key == "shape")
      tensor.shape = value.is_none() ? Indices() : nb::cast<Indices>(value);
    else if (key == "dtype")
      tensor.dtype = value.is_none() ? "" : nb::cast<std::string>(value);
    else
      return false;
    return true;
  });
}

void edit(Op& op, OpLinks& links, nb::handle changes) {
  each(changes, "an op", [&](const std::string& key, nb::handle value) {
    if (key == "time")
      op.time = Ticks(nb::cast<std::int64_t>(value));
    else if (key == "workspace")
      op.workspace = Bytes(nb::cast<std::int64_t>(value));
    else if (key == "recomputable")
      op.recomputable = nb::cast<bool>(value);
    else if (key == "lane")
      op.lane = lane_named(nb::cast<std::string>(value));
    else if (key == "inputs")
      links.inputs = nb::cast<Indices>(value);
    else if (key == "outputs")
      links.outputs = nb::cast<Indices>(value);
    else if (key == "after")
      links.after = nb::cast<Indices>(value);
    else if (key == "mutates")
      links.mutates = nb::cast<Indices>(value);
    else if (key == "in_place") {
      links.in_place.clear();
      for (const auto pair : nb::cast<nb::sequence>(value))
        links.in_place.push_back(
            {nb::cast<std::int64_t>(pair[0]), nb::cast<std::int64_t>(pair[1])});
    } else if (key == "described") {
      if (nb::cast<bool>(value)) return true;
      op.operands.clear();
      op.results.clear();
      op.arguments.clear();
    } else
      return false;
    return true;
  });
}

OpLinks links_of(const Graph& graph, OpId id) {
  OpLinks links{.inputs = copied(graph.inputs(id)),
                .outputs = copied(graph.outputs(id)),
                .after = copied(graph.after(id)),
                .mutates = copied(graph.mutates(id))};
  for (const InPlacePair& pair : graph.in_place(id))
    links.in_place.push_back({static_cast<std::int64_t>(pair.input.index()),
                              static_cast<std::int64_t>(pair.output.index())});
  return links;
}

// Of changes to something that is not there.
void refuse_others(const nb::dict& changes, std::size_t count, const char* what) {
  for (const auto& [key, value] : changes) {
    const auto index = nb::cast<std::int64_t>(key);
    if (index < 0 || static_cast<std::size_t>(index) >= count)
      throw InputError("", "there is no " + std::string(what) + " " + std::to_string(index) +
                               ": the graph has " + std::to_string(count));
  }
}

GraphObject edited(const GraphObject& of, const std::optional<std::string>& name,
                   std::optional<std::int64_t> resident_bytes, const nb::dict& tensors,
                   const nb::dict& ops, const nb::list& more_tensors,
                   const std::optional<Indices>& outputs) {
  const Graph& graph = *of;
  refuse_others(tensors, graph.tensor_count(), "tensor");
  refuse_others(ops, graph.op_count(), "op");
  GraphBuilder builder;
  builder.set_name(name ? *name : graph.name());
  builder.set_tick(graph.tick());
  builder.set_resident(resident_bytes ? Bytes(*resident_bytes) : graph.resident());
  builder.reserve(graph.op_count(), graph.tensor_count() + nb::len(more_tensors));
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    Tensor tensor = graph.tensor(TensorId(i));
    if (const nb::int_ key(i); tensors.contains(key)) edit(tensor, tensors[key]);
    builder.add_tensor(std::move(tensor));
  }
  for (const nb::handle changes : more_tensors) {
    Tensor tensor;
    edit(tensor, changes);
    builder.add_tensor(std::move(tensor));
  }
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    Op op = graph.op(OpId(i));
    op.time = graph.time(OpId(i));
    op.workspace = graph.workspace(OpId(i));
    OpLinks links = links_of(graph, OpId(i));
    if (const nb::int_ key(i); ops.contains(key)) edit(op, links, ops[key]);
    for (const Operand& operand : op.operands)
      links.operand_tensors.push_back(static_cast<std::int64_t>(operand.tensor.index()));
    for (const Operand& result : op.results)
      links.result_tensors.push_back(static_cast<std::int64_t>(result.tensor.index()));
    builder.add_op(std::move(op), links);
  }
  builder.set_outputs(outputs ? *outputs : copied(graph.outputs()));
  builder.set_order(copied(graph.order()));
  return make_graph(builder.build());
}

}  // namespace

void bind_edited(nb::class_<GraphObject>& graph) {
  graph.def(
      "edited", &edited, nb::kw_only(), nb::arg("name") = nb::none(),
      nb::arg("resident_bytes") = nb::none(), nb::arg("tensors") = nb::dict(),
      nb::arg("ops") = nb::dict(), nb::arg("more_tensors") = nb::list(),
      nb::arg("outputs") = nb::none(),
      nb::sig(
          "def edited(self, *, name: str | None = None, resident_bytes: int | None = None, "
          "tensors: collections.abc.Mapping[int, collections.abc.Mapping[str, typing.Any]] = {}, "
          "ops: collections.abc.Mapping[int, collections.abc.Mapping[str, typing.Any]] = {}, "
          "more_tensors: collections.abc.Sequence[collections.abc.Mapping[str, typing.Any]] = [], "
          "outputs: collections.abc.Sequence[int] | None = None) -> Graph"),
      "A copy of the graph with other values, by the indices of tensors and ops.\n\n"
      "tensors: of \"name\", \"bytes\", \"role\", \"shape\" and \"dtype\" (None: not said).  ops: "
      "of \"time\", "
      "\"workspace\", \"recomputable\", \"lane\", \"inputs\", \"outputs\", \"after\", \"mutates\" "
      "and "
      "\"in_place\"; with "
      "\"described\": False the op has no operands, results and arguments any more.  more_tensors: "
      "behind the "
      "others.\n\nRaises Error for a graph that no file could hold, ValueError for other keys.");
}

}  // namespace lowtide::python

// lowtide/ops/dimensions/follow.h
#include <utility>

#include <nanobind/stl/pair.h>

#include "lowtide/base/error.h"
#include "lowtide/ops/dimensions/follow.h"
#include "lowtide/ops/dimensions/rule.h"

#include "objects.h"

namespace lowtide::python {

namespace {

using namespace dimensions;

nb::list views(const std::vector<View>& list) {
  nb::list result;
  for (const View& view : list) {
    nb::dict entry;
    entry["state"] = to_string(view.state);
    if (view.position) {
      entry["dim"] = view.position->dim;
      entry["inner"] = view.position->inner;
      entry["extent"] = view.position->extent;
    }
    if (view.from_whole) entry["from_whole"] = true;
    if (view.before) entry["before"] = true;
    result.append(entry);
  }
  return result;
}

std::vector<Operand> in_parts(const Reach& reach, const std::vector<Operand>& list,
                              const std::vector<View>& views, const Slices& slices) {
  std::vector<Operand> parts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const View& view = views[i];
    Axis axis = reach.tensors[list[i].tensor.index()].axis;
    // Repeats itself: only indices are fewer.
    if (view.state != State::split && view.position) axis = {view.position->extent, 1};
    if (view.from_whole)
      parts.push_back(*in_whole(list[i], *view.position, slices));
    else
      parts.push_back(view.position ? in_part(list[i], *view.position, axis, slices) : list[i]);
  }
  return parts;
}

nb::dict carried(const Reach& reach, const Op& op, const Carry& carry,
                 std::optional<Slices> slices) {
  nb::dict entry;
  entry["carries"] = true;
  entry["extent"] = carry.extent;
  entry["longest"] = carry.longest;
  entry["weight"] = to_string(carry.weight);
  if (carry.before) entry["before"] = true;
  entry["operands"] = views(carry.operands);
  entry["results"] = views(carry.results);
  if (!slices) return entry;
  nb::dict part;
  part["operands"] = operand_list(in_parts(reach, op.operands, carry.operands, *slices));
  part["results"] = operand_list(in_parts(reach, op.results, carry.results, *slices));
  part["arguments"] = argument_dict(part_arguments(op, carry, *slices));
  entry["part"] = part;
  return entry;
}

nb::dict find(const GraphObject& graph,
              const std::vector<std::pair<std::int64_t, std::int64_t>>& axes,
              std::optional<std::int64_t> slices, std::int64_t first) {
  if (first < 0) throw InputError("first", "must be 0 or more");
  std::vector<Seed> seeds;
  for (const auto& [tensor, dim] : axes) {
    if (tensor < 0 || tensor >= static_cast<std::int64_t>(graph->tensor_count()))
      throw InputError("axes", "there is no tensor " + std::to_string(tensor) + "; the graph has " +
                                   std::to_string(graph->tensor_count()));
    seeds.push_back({TensorId(static_cast<std::size_t>(tensor)), dim});
  }
  Reach reach;
  {
    const nb::gil_scoped_release released;
    reach = follow(*graph, seeds);
  }
  nb::list tensors, ops;
  for (const TensorState& now : reach.tensors) {
    nb::dict entry;
    entry["state"] = to_string(now.state);
    if (now.state == State::split) {
      entry["extent"] = now.axis.extent;
      entry["stride"] = now.axis.stride;
    }
    tensors.append(entry);
  }
  for (const OpId id : AllIds<OpId>(graph->op_count())) {
    const auto& carry = reach.carries[id.index()];
    const auto& stop = reach.stops[id.index()];
    const std::int64_t longest = carry ? std::max<std::int64_t>(carry->longest, 1) : 0;
    if (carry && slices && (*slices < 1 || *slices > longest))
      throw InputError("slices", "must be 1 to " + std::to_string(longest));
    if (carry && slices && first > longest - *slices)
      throw InputError("first", "must be 0 to " + std::to_string(longest - *slices));
    if (carry) {
      const auto part = slices ? std::optional(Slices{first, *slices}) : std::nullopt;
      ops.append(carried(reach, graph->op(id), *carry, part));
    } else if (stop) {
      nb::dict entry;
      entry["carries"] = false;
      entry["cause"] = to_string(stop->cause);
      entry["tensor"] = stop->tensor.valid() ? nb::object(nb::int_(stop->tensor.index()))
                                             : nb::object(nb::none());
      entry["reason"] = stop->reason;
      ops.append(entry);
    } else {
      ops.append(nb::none());
    }
  }
  nb::dict result;
  result["tensors"] = tensors;
  result["ops"] = ops;
  return result;
}

}  // namespace

void bind_dimensions(nb::module_& module, nb::class_<GraphObject>& graph) {
  module.def("dimension_kinds", &known_kinds,
             "The kinds of ops that the table of dimensions knows.");
  graph.def(
      "dimensions", &find, nb::arg("axes"), nb::kw_only(), nb::arg("slices") = nb::none(),
      nb::arg("first") = 0,
      nb::sig("def dimensions(self, axes: collections.abc.Sequence[tuple[int, int]], *, "
              "slices: int | None = None, first: int = 0) -> dict[str, typing.Any]"),
      "How far axes reach, each given as (tensor, dimension of its shape): for every tensor "
      "whether "
      "parts see it \"whole\", \"split\" or \"partial\" (a sum still to be made); for every op how "
      "it carries the axis, what stops it, or None where it is not reached.  With `slices`, also "
      "operands, results and arguments of a part that has so many, from `first` on; in tensors "
      "that are shorter by a crop (`extent` against `longest`) those that there are.\n\n"
      "Raises Error for an axis that does not exist.");
}

}  // namespace lowtide::python

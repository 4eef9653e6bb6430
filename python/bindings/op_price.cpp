// lowtide/device/op_price.h, lowtide/device/part_price.h, and the files of cost tables
#include "lowtide/device/op_price.h"

#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/device/part_price.h"
#include "lowtide/io/costs_json.h"
#include "lowtide/io/device_json.h"

#include "convert.h"
#include "objects.h"

namespace lowtide::python {

namespace {

CostTable table_from(nb::handle path) {
  const auto table = costs_from(path);
  return table ? *table : CostTable();
}

}  // namespace

void bind_op_price(nb::module_& module) {
  module.def(
      "priced_on",
      [](const GraphObject& graph, nb::handle device, nb::handle costs) {
        const std::optional<Device> known = device_from(device);
        const CostTable table = table_from(costs);
        const nb::gil_scoped_release released;
        return make_graph(priced_on(Graph(*graph), *known, io::stated_operations, &table));
      },
      nb::arg("graph"), nb::arg("device"), nb::arg("costs") = nb::none(),
      nb::sig("def priced_on(graph: Graph, device: Device | str | os.PathLike[str], costs: str | "
              "os.PathLike[str] | None = None) -> Graph"),
      "The graph with the time of every op replaced by a roofline estimate for that device, as "
      "`lowtide convert --device` writes it. Ops in the table of measured calls in the file "
      "`costs` take time and workspace from there. A tick of flop or none becomes ns.\n\nRaises "
      "Error for an op whose number of operations is unknown.");
  module.def(
      "costs_of",
      [](const GraphObject& graph, const std::string& device) {
        const nb::gil_scoped_release released;
        return io::write_costs({device, costs_of(*graph), {}});
      },
      nb::arg("graph"), nb::arg("device") = "",
      "The text of a cost table with the times of a measured graph, to price other graphs. device: "
      "name of the device, for people.\n\nRaises Error for a graph whose tick is no time.");
  module.def(
      "_call_costs",
      [](const GraphObject& graph, nb::handle device, nb::handle costs) {
        const std::optional<Device> known = device_from(device);
        const CostTable table = table_from(costs);
        nb::list found;
        for (std::size_t i = 0; i < graph->op_count(); ++i) {
          const Call call = call_of(graph->op(OpId(i)));
          const CallCost cost = price(*known, &table, call, graph->label(OpId(i)));
          found.append(nb::make_tuple(cost.ns, cost.workspace.count()));
        }
        return found;
      },
      nb::arg("graph"), nb::arg("device"), nb::arg("costs") = nb::none(),
      "(ns, workspace) of every op by itself, with the ramps of small kernels.");
}

}  // namespace lowtide::python

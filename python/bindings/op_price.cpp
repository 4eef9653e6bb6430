// lowtide/device/op_price.h
#include "lowtide/device/op_price.h"

#include "lowtide/base/error.h"
#include "lowtide/io/device_json.h"

#include "convert.h"
#include "objects.h"

namespace lowtide::python {

void bind_op_price(nb::module_& module) {
  module.def(
      "priced_on",
      [](const GraphObject& graph, nb::handle device) {
        const std::optional<Device> known = device_from(device);
        const nb::gil_scoped_release released;
        return make_graph(priced_on(Graph(*graph), *known, io::stated_operations));
      },
      nb::arg("graph"), nb::arg("device"),
      nb::sig("def priced_on(graph: Graph, device: Device | str | os.PathLike[str]) -> Graph"),
      "The graph with the time of every op on that device by the roofline, as `lowtide convert "
      "--device` writes it. A tick of flop or none becomes ns.\n\nRaises Error for an op whose "
      "operations nothing says.");
}

}  // namespace lowtide::python

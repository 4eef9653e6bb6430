// Where the package has found engines; what is done with them is not Python's business.
#include <string>

#include "lowtide/engines/engine.h"

#include "objects.h"

namespace lowtide::python {

void bind_engines(nb::module_& module) {
  module.def(
      "_offer_engines",
      [](const std::string& cpsat, const std::string& highs, const std::string& worker) {
        offer_library(EngineKind::cpsat, cpsat);
        offer_library(EngineKind::highs, highs);
        offer_worker(worker);
      },
      nb::arg("cpsat"), nb::arg("highs"), nb::arg("worker"),
      nb::sig("def _offer_engines(cpsat: str, highs: str, worker: str) -> None"),
      "Paths of what may be opened later; empty where there is nothing.");
}

}  // namespace lowtide::python

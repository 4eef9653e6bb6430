// Where the package has found engines; what is done with them is not Python's business.
#include <string>

#include "lowtide/engines/find.h"

#include "objects.h"

namespace lowtide::python {

void bind_engines(nb::module_& module) {
  module.def(
      "_offer_engines",
      [](const std::string& cpsat, const std::string& highs, const std::string& worker) {
        engines::offer_library(engines::EngineKind::cpsat, cpsat);
        engines::offer_library(engines::EngineKind::highs, highs);
        engines::offer_worker(worker);
      },
      nb::arg("cpsat"), nb::arg("highs"), nb::arg("worker"),
      nb::sig("def _offer_engines(cpsat: str, highs: str, worker: str) -> None"),
      "Paths of what may be opened later; empty where there is nothing.");
}

}  // namespace lowtide::python

// The module lowtide._core. `lowtide/__init__.py` says which of its names are for users.
#include "lowtide/base/version.h"

#include "objects.h"

NB_MODULE(_core, module) {
  using namespace lowtide::python;
  // What daemon threads hold when the interpreter ends is no mistake of ours, and we never print.
  nb::set_leak_warnings(false);
  module.attr("__version__") = nb::str(lowtide::kVersion.data(), lowtide::kVersion.size());
  bind_errors(module);
  bind_graph(module);
  bind_generate(module);
  bind_plan(module);
  bind_problem(module);
  bind_outcome(module);
  bind_simulate(module);
  bind_verify(module);
  bind_driver(module);
  bind_tradeoff(module);
  bind_report(module);
  bind_run(module);
}

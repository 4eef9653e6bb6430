// The module lowtide._core. `lowtide/__init__.py` says which of its names are for users.
#include "lowtide/base/version.h"

#include "objects.h"

NB_MODULE(_core, module) {
  namespace nb = nanobind;
  // What daemon threads hold when the interpreter ends is no mistake of ours, and we never print.
  nb::set_leak_warnings(false);
  module.attr("__version__") = nb::str(lowtide::kVersion.data(), lowtide::kVersion.size());
  lowtide::python::bind_errors(module);
  lowtide::python::bind_graph(module);
  lowtide::python::bind_generate(module);
  lowtide::python::bind_device(module);
  lowtide::python::bind_roofline(module);
  lowtide::python::bind_op_price(module);
  lowtide::python::bind_plan(module);
  lowtide::python::bind_problem(module);
  lowtide::python::bind_outcome(module);
  lowtide::python::bind_simulate(module);
  lowtide::python::bind_verify(module);
  lowtide::python::bind_replay(module);
  lowtide::python::bind_footprint(module);
  lowtide::python::bind_context(module);
  lowtide::python::bind_partition(module);
  lowtide::python::bind_pictures(module);
  lowtide::python::bind_block_solver(module);
  lowtide::python::bind_solver(module);
  lowtide::python::bind_driver(module);
  lowtide::python::bind_place(module);
  lowtide::python::bind_tradeoff(module);
  lowtide::python::bind_report(module);
  lowtide::python::bind_run(module);
  lowtide::python::bind_engines(module);
}

#include "errors.h"

#include "lowtide/base/error.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/transforms/apply.h"

#include "objects.h"

namespace lowtide::python {

namespace {

// Live as long as the interpreter; the module holds them too.
struct Classes {
  PyObject *error, *plan_error, *wrong_graph, *internal;
} classes{};

PyObject* make_class(nb::module_& module, const char* name, const char* doc, PyObject* base) {
  const std::string full = nb::cast<std::string>(module.attr("__name__")) + "." + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  if (made == nullptr) throw nb::python_error();
  module.attr(name) = nb::handle(made);
  return made;
}

void raise(PyObject* type, const char* what) {
  PyErr_SetString(type, report::clean_text(what).c_str());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const TransformRefused& error) {
    raise(classes.plan_error, error.what());
  } catch (const InputError& error) {
    raise(classes.error, error.what());
  } catch (const WrongGraph& error) {
    raise(classes.wrong_graph, error.what());
  } catch (const PlanRefused& error) {
    nb::object made = nb::handle(classes.plan_error)(report::clean_text(error.what()));
    if (error.step()) made.attr("step") = *error.step();
    PyErr_SetObject(classes.plan_error, made.ptr());
  } catch (const InternalError& error) {
    raise(classes.internal, error.what());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  classes.error = make_class(
      module, "Error",
      "Bad input: what is wrong, where, and what would be right, with the text of the command.",
      PyExc_ValueError);
  classes.plan_error = make_class(module, "PlanError",
                                  "A plan that breaks a rule, its budget or its order, or has a "
                                  "wrong figure. `step` is the index of that step, or None.",
                                  classes.error);
  nb::handle(classes.plan_error).attr("step") = nb::none();
  classes.wrong_graph =
      make_class(module, "WrongGraphError", "A plan for another graph.", classes.plan_error);
  classes.internal =
      make_class(module, "InternalError", "A bug in Lowtide; please report it with the graph.",
                 PyExc_RuntimeError);
  nb::register_exception_translator(translate);
}

}  // namespace lowtide::python

// lowtide/sim/simulate.h. The columns of a timeline are read where they are, without a copy.
#include "lowtide/sim/simulate.h"

#include <cstdint>
#include <type_traits>

#include <fmt/format.h>

#include "errors.h"
#include "objects.h"

namespace lowtide::python {

namespace {

struct TimelineObject {
  std::shared_ptr<const Timeline> timeline;
  const Timeline* operator->() const { return timeline.get(); }
};

// One column of it: 64-bit integers in a row.
struct Column {
  std::shared_ptr<const Timeline> owner;
  const std::int64_t* data;
  Py_ssize_t size;
  Py_ssize_t stride = sizeof(std::int64_t);
};

template <class Unit>
Column column(const TimelineObject& timeline, const std::vector<Unit>& values) {
  static_assert(sizeof(Unit) == sizeof(std::int64_t) && std::is_standard_layout_v<Unit>);
  return {timeline.timeline, reinterpret_cast<const std::int64_t*>(values.data()),
          static_cast<Py_ssize_t>(values.size())};
}

// Py_bf_getbuffer of a Column.
int column_buffer(PyObject* self, Py_buffer* view, int flags) {
  if ((flags & PyBUF_WRITABLE) != 0) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "a timeline cannot be written to");
    return -1;
  }
  Column& column = *nb::inst_ptr<Column>(self);
  Py_INCREF(self);
  view->obj = self;
  view->buf = const_cast<std::int64_t*>(column.data);
  view->len = column.size * column.stride;
  view->itemsize = column.stride;
  view->readonly = 1;
  view->ndim = 1;
  static char format[] = {sizeof(long) == sizeof(std::int64_t) ? 'l' : 'q', '\0'};
  view->format = (flags & PyBUF_FORMAT) != 0 ? format : nullptr;
  view->shape = (flags & PyBUF_ND) != 0 ? &column.size : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &column.stride : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

// Py_bf_getbuffer of a Timeline: that of its memory.
int timeline_buffer(PyObject* self, Py_buffer* view, int flags) {
  const TimelineObject& timeline = *nb::inst_ptr<TimelineObject>(self);
  const nb::object memory = nb::cast(column(timeline, timeline->live));
  return PyObject_GetBuffer(memory.ptr(), view, flags);
}

PyType_Slot column_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(column_buffer)},
                              {0, nullptr}};
PyType_Slot timeline_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(timeline_buffer)},
                                {0, nullptr}};

nb::object view_of(Column column) {
  const nb::object owner = nb::cast(std::move(column));
  nb::object view = nb::steal(PyMemoryView_FromObject(owner.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  return view;
}

TimelineObject run(const GraphObject& graph, const PlanObject& plan) {
  const nb::gil_scoped_release released;
  return {std::make_shared<const Timeline>(simulate(*graph, plan.file->plan))};
}

}  // namespace

void bind_simulate(nb::module_& module) {
  nb::class_<Column>(module, "_Column", nb::type_slots(column_slots));
  nb::class_<TimelineObject>(
      module, "Timeline", nb::type_slots(timeline_slots),
      "Memory and time of each step of a run. A buffer of `memory`: numpy.asarray(timeline) and "
      "memoryview(timeline) read it without a copy.")
      .def_prop_ro(
          "peak", [](const TimelineObject& t) { return t->cost.peak.count(); }, "In bytes.")
      .def_prop_ro(
          "duration", [](const TimelineObject& t) { return t->cost.duration.count(); }, "In ticks.")
      .def_prop_ro(
          "host_peak", [](const TimelineObject& t) { return t->cost.host_peak.count(); },
          "Bytes of copies on the host.")
      .def_prop_ro(
          "start", [](const TimelineObject& t) { return t->start.count(); },
          "Bytes in use before the first step.")
      .def_prop_ro(
          "memory", [](const TimelineObject& t) { return view_of(column(t, t->live)); },
          nb::sig("def memory(self) -> memoryview"),
          "Bytes in use during each step, resident bytes and workspace included: int64, one for "
          "each step, not a copy.")
      .def_prop_ro(
          "end", [](const TimelineObject& t) { return view_of(column(t, t->end)); },
          nb::sig("def end(self) -> memoryview"),
          "Ticks at which each step has ended: int64, one for each step, not a copy.")
      .def_prop_ro(
          "peak_step", [](const TimelineObject& t) { return t->peak_step(); },
          "The first step with the most bytes in use; the number of steps if the start has the "
          "most.")
      .def_prop_ro(
          "violation",
          [](const TimelineObject& t) -> nb::object {
            if (!t->violation) return nb::none();
            return nb::make_tuple(t->violation->step, t->violation->reason);
          },
          nb::sig("def violation(self) -> tuple[int, str] | None"),
          "The step at which the plan breaks a rule, and the rule; the other figures are up to "
          "that step. None if it breaks none.")
      .def(
          "__len__", [](const TimelineObject& t) { return t->live.size(); }, "The number of steps.")
      .def("__repr__", [](const TimelineObject& t) {
        return fmt::format("<lowtide.Timeline: {} steps, peak {}, duration {}>", t->live.size(),
                           t->cost.peak.count(), t->cost.duration.count());
      });
  module.def(
      "simulate", &run, nb::arg("graph"), nb::arg("plan"),
      "Simulate the steps. A plan that breaks a rule is no error here: see Timeline.violation.");
  module.def(
      "own_plan",
      [](const GraphObject& graph) {
        PlanFile file;
        file.plan = own_plan(*graph);
        file.order = Order::given;
        return PlanObject{std::make_shared<const PlanFile>(std::move(file))};
      },
      nb::arg("graph"), nb::call_guard<nb::gil_scoped_release>(),
      "The unplanned step: every op once in the given order, each tensor freed as early as "
      "possible.");
}

}  // namespace lowtide::python

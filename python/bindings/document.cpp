#include "document.h"

#include <cmath>
#include <memory>
#include <string>

#include "convert.h"

namespace lowtide::python {

namespace {

std::string type_of(nb::handle value) { return nb::type_name(value.type()).c_str(); }

// No code of the user's runs meanwhile, so nothing changes under the iteration.
class Writer {
 public:
  void write(nb::handle value);
  io::JsonDocument build() { return builder_.build(); }

 private:
  void write_integer(nb::handle value);
  void write_float(nb::handle value);
  void write_object(nb::handle dict);

  io::JsonBuilder builder_;
};

void Writer::write(nb::handle value) {
  PyObject* const object = value.ptr();
  if (value.is_none()) {
    builder_.null();
  } else if (PyBool_Check(object)) {
    builder_.boolean(object == Py_True);
  } else if (PyLong_Check(object)) {
    write_integer(value);
  } else if (PyFloat_Check(object)) {
    write_float(value);
  } else if (PyUnicode_Check(object)) {
    builder_.string(text_of(value));
  } else if (PyDict_Check(object)) {
    write_object(value);
  } else if (PyList_Check(object) || PyTuple_Check(object)) {
    // What the stable ABI has; asked anew each time, since nothing keeps a list from changing.
    const bool is_list = PyList_Check(object);
    builder_.begin_array();
    for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(object) : PyTuple_Size(object)); ++i)
      write(is_list ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i));
    builder_.end_array();
  } else {
    builder_.refuse("a graph file holds no " + type_of(value));
  }
}

void Writer::write_integer(nb::handle value) {
  int overflow = 0;
  const long long integer = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0) return builder_.integer(integer);
  constexpr int kDecimal = 10;
  const nb::object digits = nb::steal(PyNumber_ToBase(value.ptr(), kDecimal));
  if (!digits.is_valid()) throw nb::python_error();
  builder_.number(text_of(digits));
}

void Writer::write_float(nb::handle value) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (!std::isfinite(number))
    builder_.refuse(std::isnan(number) ? "JSON has no number NaN" : "JSON has no number Infinity");
  const std::unique_ptr<char, void (*)(void*)> text(
      PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr), &PyMem_Free);
  builder_.number(text.get());
}

void Writer::write_object(nb::handle dict) {
  builder_.begin_object();
  Py_ssize_t at = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (PyDict_Next(dict.ptr(), &at, &key, &value) != 0) {
    if (!PyUnicode_Check(key)) {
      builder_.key("");
      builder_.refuse("keys are strings, and no " + type_of(key));
    }
    builder_.key(text_of(key));
    write(value);
  }
  builder_.end_object();
}

}  // namespace

io::JsonDocument document_of(nb::handle value) {
  Writer writer;
  writer.write(value);
  return writer.build();
}

}  // namespace lowtide::python

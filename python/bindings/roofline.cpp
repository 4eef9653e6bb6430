// lowtide/device/roofline.h
#include "lowtide/device/roofline.h"

#include "objects.h"

namespace lowtide::python {

void bind_roofline(nb::module_& module) {
  module.def("_kernel_ns", &kernel_ns, nb::arg("device"), nb::arg("operations"), nb::arg("dtype"),
             nb::arg("bytes"),
             "ns of a kernel that does so many operations in `dtype` and moves so many bytes.");
  module.def("_collective_ns", &collective_ns, nb::arg("device"), nb::arg("bytes"),
             "ns of a collective that sends so many bytes to other devices, or gets so many.");
}

}  // namespace lowtide::python

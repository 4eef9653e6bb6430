// Looking up a rate; everything else of a device is data.
#include "lowtide/device/device.h"

#include "lowtide/base/error.h"

namespace lowtide {

std::int64_t Device::rate(std::string_view dtype) const {
  const ComputeRate* f32 = nullptr;
  for (const ComputeRate& known : rates) {
    if (known.dtype == dtype) return known.operations_per_second;
    if (known.dtype == "f32") f32 = &known;
  }
  check(f32 != nullptr, "a device has a rate for f32");
  return f32->operations_per_second;
}

}  // namespace lowtide

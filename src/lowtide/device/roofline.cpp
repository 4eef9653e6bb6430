// Each operation on doubles is rounded once and none is fused, so every machine gets the same ns.
#include "lowtide/device/roofline.h"

#include <algorithm>
#include <cmath>

#include "lowtide/base/error.h"

namespace lowtide {

namespace {

std::int64_t whole_ns(double seconds, std::int64_t fixed) {
  const double ns = std::ceil(seconds * 1e9);
  if (!(ns < 0x1p63)) detail::throw_overflow();
  return checked_add(Ticks(fixed), Ticks(static_cast<std::int64_t>(ns))).count();
}

}  // namespace

std::int64_t kernel_ns(const Device& device, std::int64_t operations, std::string_view dtype,
                       std::int64_t bytes) {
  const double rate = kComputeShare * static_cast<double>(device.rate(dtype));
  const double bandwidth = kMemoryShare * static_cast<double>(device.bytes_per_second);
  return whole_ns(
      std::max(static_cast<double>(operations) / rate, static_cast<double>(bytes) / bandwidth),
      device.launch_ns);
}

std::int64_t collective_ns(const Device& device, std::int64_t bytes) {
  if (!device.peer_link)
    throw InputError("device " + device.name,
                     "has no link to other devices, so a collective has no price; its file may say "
                     "\"peer_link\"");
  return whole_ns(
      static_cast<double>(bytes) / static_cast<double>(device.peer_link->bytes_per_second),
      device.peer_link->latency_ns);
}

}  // namespace lowtide

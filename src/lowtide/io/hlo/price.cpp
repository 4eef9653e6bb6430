#include "lowtide/io/hlo/price.h"

#include <algorithm>
#include <string_view>

#include "lowtide/base/units.h"
#include "lowtide/device/roofline.h"
#include "lowtide/io/hlo/opcode.h"
#include "lowtide/ops/call.h"

namespace lowtide::io::hlo {

namespace {

// The number type of the first floating-point array, operands before results.
std::string_view computed_in(const Computation& within, const Instruction& one) {
  std::string_view found;
  const auto look = [&](const Shape& shape) {
    for_each_leaf(shape, [&](const Shape& leaf) {
      if (found.empty() && is_floating(leaf.type->dtype)) found = leaf.type->dtype;
    });
  };
  for (const std::uint32_t operand : one.operands) {
    look(within.instructions[operand].shape);
    if (!found.empty()) return found;
  }
  look(one.shape);
  return found.empty() ? "f32" : found;
}

bool is_on_host(const Shape& shape) {
  bool found = false;
  for_each_leaf(shape, [&](const Shape& leaf) { found = found || leaf.space == kHostSpace; });
  return found;
}

std::int64_t transfer_ns(const LinkSpeed& link, std::int64_t bytes) {
  const Ticks time(checked_mul_div(bytes, 1'000'000'000, link.bytes_per_second, Rounding::ceil));
  return checked_add(Ticks(link.latency_ns), time).count();
}

}  // namespace

std::int64_t price_of(const Device& device, const Computation& within, const Instruction& one,
                      const Work& work) {
  if (work.operations == 0 && work.bytes == 0) return 0;
  const AsyncOpcode async = async_of(one.opcode);
  const std::string_view name = async.part == AsyncPart::none ? one.opcode : async.wrapped;
  if (opcode_of(name).kind == OpcodeKind::collective && device.peer_link) {
    const std::int64_t once = work.bytes / 2;  // what goes in, or what comes out
    return collective_ns(device, name == "all-reduce" ? work.bytes : once);
  }
  const bool copies = name == "copy" || name == "dynamic-slice" || name == "dynamic-update-slice";
  const bool crosses =
      is_on_host(one.shape) ||
      (!one.operands.empty() && is_on_host(within.instructions[one.operands[0]].shape));
  if (copies && crosses && device.host_link) return transfer_ns(*device.host_link, work.bytes / 2);
  return kernel_ns(device, work.operations, computed_in(within, one), work.bytes);
}

}  // namespace lowtide::io::hlo

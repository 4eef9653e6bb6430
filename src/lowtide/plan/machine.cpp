// Bytes a second over ticks a second, cancelled down.
#include "lowtide/plan/machine.h"

#include <numeric>
#include <string>

#include "lowtide/base/error.h"

namespace lowtide {

namespace {

std::int64_t ticks_per_second(TickUnit tick) {
  switch (tick) {
    case TickUnit::ns: return 1'000'000'000;
    case TickUnit::us: return 1'000'000;
    case TickUnit::ms: return 1'000;
    case TickUnit::flop:
    case TickUnit::none: break;
  }
  throw InputError("link",
                   "a link takes time, and the graph's tick is \"" + std::string(to_string(tick)) +
                       "\"; price the graph in ns first: lowtide convert GRAPH OUT --device "
                       "NAME");
}

}  // namespace

Machine machine_of(const LinkSpeed& speed, TickUnit tick) {
  check(speed.bytes_per_second > 0 && speed.latency_ns >= 0, "a link moves bytes");
  const std::int64_t ticks = ticks_per_second(tick);
  const std::int64_t common = std::gcd(speed.bytes_per_second, ticks);
  const Link link{Ticks(checked_mul_div(speed.latency_ns, ticks, 1'000'000'000, Rounding::ceil)),
                  Bytes(speed.bytes_per_second / common), Ticks(ticks / common)};
  return {link, link};
}

}  // namespace lowtide

// Bytes a second over ticks a second, cancelled down.
#include "lowtide/plan/machine.h"

#include <numeric>
#include <string>

#include "lowtide/base/error.h"

namespace lowtide {

static constexpr std::int64_t kSecond = 1'000'000'000;  // ns

Machine machine_of(const LinkSpeed& speed, TickUnit tick) {
  check(speed.bytes_per_second > 0 && speed.latency_ns >= 0, "a link moves bytes");
  if (nanoseconds(tick) == 0)
    throw InputError("link", "a link takes time, and the graph's tick is \"" +
                                 std::string(to_string(tick)) +
                                 "\"; price the graph in ns first: lowtide convert GRAPH OUT "
                                 "--device NAME");
  const std::int64_t ticks = kSecond / nanoseconds(tick);
  const std::int64_t common = std::gcd(speed.bytes_per_second, ticks);
  const Link link{Ticks(checked_mul_div(speed.latency_ns, ticks, kSecond, Rounding::ceil)),
                  Bytes(speed.bytes_per_second / common), Ticks(ticks / common)};
  return {link, link};
}

}  // namespace lowtide

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

namespace {

std::int64_t checked_product(std::int64_t a, std::int64_t b) {
  return checked_mul_div(a, b, 1, Rounding::floor);
}

Link derated(const Link& link, std::int64_t left, std::int64_t whole) {
  const std::int64_t common = std::gcd(link.bytes.count(), link.ticks.count());
  const std::int64_t bytes = link.bytes.count() / common, ticks = link.ticks.count() / common;
  const std::int64_t above = std::gcd(bytes, whole), below = std::gcd(ticks, left);
  return {link.latency, Bytes(checked_product(bytes / above, left / below)),
          Ticks(checked_product(ticks / below, whole / above))};
}

}  // namespace

Machine derated(const Machine& machine, const Share& share) {
  check(share.numerator >= 0 && share.numerator < share.denominator, "something of a link is left");
  const std::int64_t left = share.denominator - share.numerator;
  const std::int64_t common = std::gcd(left, share.denominator);
  const auto of = [&](const Link& link) {
    return derated(link, left / common, share.denominator / common);
  };
  return {of(machine.device_to_host), of(machine.host_to_device)};
}

}  // namespace lowtide

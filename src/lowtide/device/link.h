// The speed of a link, and its text form: "25GB/s,10us".
#pragma once

#include <cstdint>
#include <string_view>

namespace lowtide {

struct LinkSpeed {
  std::int64_t bytes_per_second = 1;  // > 0
  std::int64_t latency_ns = 0;        // of each transfer; >= 0
  bool operator==(const LinkSpeed&) const = default;
};

// Parses bytes per second and, after a comma, the latency of each transfer (default 0): "25GB/s",
// "12.5 GB/s, 5us". GB are 10^9 bytes, GiB 2^30. Decimal fractions are exact; a latency is rounded
// up to whole nanoseconds. Throws InputError (place: link "TEXT") that says what would be right.
LinkSpeed parse_link(std::string_view text);

}  // namespace lowtide

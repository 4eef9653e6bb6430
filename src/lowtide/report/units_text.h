// Numbers for people, rounded to three digits. Files have exact figures instead.
#pragma once

#include <cstdint>
#include <string>

#include "lowtide/base/units.h"
#include "lowtide/graph/graph.h"

namespace lowtide::report {

// "7.45 GiB", "512 B": powers of 1024.
std::string bytes_text(Bytes bytes);
std::string exact_bytes_text(Bytes bytes);  // "6.78 GiB (7,278,389,228 bytes)"

// "12.3 ms" for a graph in ns, us or ms; "12.3 GFLOP" for one in flop; "12,345" without a unit.
std::string ticks_text(Ticks ticks, TickUnit unit);

// "1,234,567".
std::string count_text(std::int64_t count);

// "4.27 %"; two digits after the point, three if the first two would be zero ("0.004 %").
// "infinite" for an infinite value.
std::string percent_text(double percent);

}  // namespace lowtide::report

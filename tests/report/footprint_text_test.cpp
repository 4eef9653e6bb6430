#include "lowtide/report/footprint_text.h"

#include <doctest/doctest.h>

namespace lowtide::report {
namespace {

constexpr Bytes mib(std::int64_t count) { return Bytes(count << 20); }

layout::Peaks peaks(std::int64_t allocated, std::int64_t reserved) {
  return {mib(allocated), mib(allocated), mib(allocated), mib(reserved), mib(2)};
}

layout::DeviceFootprint some() {
  layout::DeviceFootprint found;
  found.live = mib(90);
  found.replay.peaks = peaks(100, 150);
  found.replay.steps = {peaks(100, 120), peaks(100, 150), peaks(100, 150)};
  found.better = {{"expandable_segments:True", mib(110)}, {"", mib(140)}};
  return found;
}

bool has(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

TEST_CASE("footprint text: equal steps share a row, and what would help is said") {
  const std::string text = footprint_text(some(), {});
  CHECK(has(text, "allocator  the defaults"));
  CHECK(has(text, "live       90"));
  CHECK(has(text, "2 to 3"));
  CHECK(has(text, "1.200"));
  CHECK(has(text, "1.500"));
  CHECK(has(text, "expandable_segments:True  saves 40.0 MiB"));
  CHECK(has(text, "the defaults              saves 10.0 MiB"));
}

TEST_CASE("footprint text: memory that runs out") {
  layout::DeviceFootprint found = some();
  found.terms.settings.expandable_segments = true;
  found.terms.memory = mib(128);
  found.replay.counts.retries = 3;
  found.replay.out_of_memory = {5, mib(30), mib(80), mib(120)};
  const std::string text = footprint_text(found, {});
  CHECK(has(text, "allocator  expandable_segments:True"));
  CHECK(has(text, "memory     128 MiB"));
  CHECK(has(text, "retries    3"));
  CHECK(has(text, "for 30.0 MiB in step 3"));
  CHECK(has(text, "reserves 110 MiB"));
}

TEST_CASE("footprint text: it fits a terminal") {
  for (const std::size_t columns : {60U, 80U, 120U}) {
    TerminalStyle style;
    style.width = columns;
    style.unicode = false;
    layout::DeviceFootprint found = some();
    found.better[0].settings = "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4]";
    const std::string text = footprint_text(found, style);
    const std::string table = text.substr(text.find("\n\n"));
    for (std::size_t at = 0; at < table.size();) {
      const std::size_t end = std::min(table.find('\n', at), table.size());
      CHECK(end - at <= columns);
      at = end + 1;
    }
  }
}

}  // namespace
}  // namespace lowtide::report

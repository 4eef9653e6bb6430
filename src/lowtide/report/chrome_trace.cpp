// Chrome's trace format: a JSON list of events, with times in microseconds.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/report/trace.h"

namespace lowtide::report {

namespace {

std::string quoted_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string microseconds_text(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

int thread_of(TraceLane lane) { return 1 + static_cast<int>(lane); }

}  // namespace

std::string chrome_trace(const Trace& trace) {
  std::string out = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      R"({{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{{"name":{}}}}})",
      quoted_text(trace.name));
  TraceLane last = TraceLane::parts;
  bool is_first = true;
  for (const TraceSlice& slice : trace.slices) {
    if (is_first || slice.lane != last)
      out += fmt::format(
          ",\n"
          R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_name","args":{{"name":"{1}"}}}})"
          ",\n"
          R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
          thread_of(slice.lane), to_string(slice.lane));
    last = slice.lane;
    is_first = false;
    out += fmt::format(
        ",\n"
        R"({{"ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":{},"cat":{},)"
        R"("args":{{"step":{})",
        thread_of(slice.lane), microseconds_text(slice.begin),
        microseconds_text(slice.end - slice.begin), quoted_text(slice.name),
        quoted_text(slice.category), slice.step);
    if (!slice.kind.empty()) out += ",\"kind\":" + quoted_text(slice.kind);
    if (!slice.origin.empty()) out += ",\"origin\":" + quoted_text(slice.origin);
    if (slice.bytes > Bytes(0)) out += fmt::format(",\"bytes\":{}", slice.bytes.count());
    out += "}}";
  }
  for (const TraceCount& count : trace.counter)
    out += fmt::format(
        ",\n"
        R"({{"ph":"C","pid":1,"tid":0,"ts":{},"name":"live bytes","args":{{"live":{}}}}})",
        microseconds_text(count.time), count.live.count());
  return out + "\n]}\n";
}

}  // namespace lowtide::report

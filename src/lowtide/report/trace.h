// The run of a plan over time, for the viewers of others: Chrome's trace format (chrome://tracing,
// Perfetto, Speedscope) and Perfetto's own.
//
//   compute       |aten.mm|aten.gelu|aten.mm|...   what is recomputed is of the category
//   "recomputed" copies out            |hidden_1   |            to the host, of a plan that copies
//   copies in                  |hidden_1 |
//   network               |all_gather_1 |          of a graph with network ops
//   parts         |split 1 of 2    |split 2 of 2|  of a plan that splits ops; nested ones inside
//   live bytes    ~~~/~~~\__/~~                    a counter; its maximum is the peak of the plan
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/report/report.h"

namespace lowtide::report {

enum class TraceLane : std::uint8_t { compute, out, in, network, parts };
inline constexpr std::array kTraceLanes = {TraceLane::compute, TraceLane::out, TraceLane::in,
                                           TraceLane::network, TraceLane::parts};
std::string_view to_string(TraceLane lane);  // "copies out"

struct TraceSlice {
  TraceLane lane = TraceLane::compute;
  std::int64_t begin = 0, end = 0;  // nanoseconds
  std::string name;
  std::string category;  // "forward", "recomputed", "copy", "part", ...; empty: not known
  std::string origin = {}, kind = {};  // of the op
  std::int64_t step = 0;
  Bytes bytes = {};  // that a copy moves
};

struct TraceCount {
  std::int64_t time;  // nanoseconds
  Bytes live;
};

struct Trace {
  std::string name;                // the graph's
  std::vector<TraceSlice> slices;  // by lane, then by begin; of parts the outer first
  std::vector<TraceCount> counter;
};

// Of a run that breaks no rule. A step counts from the end of the one before on the compute lane, a
// copy when its step comes, as in the pages of reports. A tick of a graph without a unit of time is
// taken for a microsecond. InputError if a time does not fit into 63 bits of nanoseconds.
Trace trace_of(const Graph& graph, const Report& report);

std::string chrome_trace(const Trace& trace);    // JSON
std::string perfetto_trace(const Trace& trace);  // protobuf

// By the ending of the file's name: .pftrace is Perfetto's, .json and .json.gz are Chrome's.
// InputError (place: the name) for another ending.
enum class TraceFormat : std::uint8_t { chrome, perfetto };
TraceFormat trace_format(std::string_view file);
std::string write_trace(const Trace& trace, TraceFormat format);

}  // namespace lowtide::report

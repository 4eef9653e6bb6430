// The content of a report on a graph and its plan: two runs side by side, the tensors live at their
// peaks, and the causes of the overhead. Plain data, computed once with room sim; report_text.h and
// report_html.h draw it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/layout/footprint.h"
#include "lowtide/plan/footprint.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/report/lanes.h"
#include "lowtide/report/repetition.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::report {

// A tensor in use at the peak. Here and below, a tensor or op without a name is called "tensor 3"
// or "op 3".
struct LiveTensor {
  TensorId id;
  std::string name;
  Bytes bytes;
  double share = 0;  // of the peak, 0 to 1
  Role role = Role::activation;
  std::string origin;    // of the producing op; empty for an input or if unknown
  std::string producer;  // the producing op's name; empty for an input
};

struct RoleBytes {
  Role role = Role::activation;
  Bytes bytes;
  std::size_t tensors = 0;
};

// Consecutive steps of one part of a split: from its first computation to its last.
struct Stretch {
  std::size_t transform = 0;
  std::int32_t part = 0;  // PartOf::kBefore: before the parts
  std::size_t depth = 0;  // number of other splits that contain it
  std::size_t first = 0, last = 0;
};

// The effect of one transform of a plan.
struct Applied {
  std::string what;
  std::size_t ops = 0;              // made by the transform
  std::size_t first = 0, last = 0;  // first and last step of these; both 0 if there are none
  Bytes peak;                       // in between
};

// A run of the graph.
struct Run {
  std::shared_ptr<const TransformedGraph> transformed =
      nullptr;  // by the plan's transforms, if it has any
  Plan plan;    // on the transformed graph
  Timeline timeline;
  std::size_t peak_step = 0;  // as Timeline::peak_step
  std::string peak_what;      // "compute of op 3 "mm_3"", or "the start"
  std::size_t computations = 0, in_place = 0, transfers = 0;
  std::vector<std::size_t> recomputed_steps;  // computations of an op after its first, ascending
  Ticks recomputed_time;                      // of these
  double overhead_percent = 0;                // over computing each op once
  Lanes lanes;                                // of a plan that copies to the host
  std::vector<LiveTensor> largest;            // at the peak, the largest first, at most kLargest
  std::vector<RoleBytes>
      by_role;      // at the peak, all live tensors, the largest first; no empty ones
  Bytes workspace;  // of the op computed at the peak
  std::vector<Stretch> stretches;  // by depth, then by step

  static constexpr std::size_t kLargest = 12;

  // The graph of the steps; `original` is the graph of the report.
  const Graph& graph(const Graph& original) const {
    return transformed ? transformed->graph : original;
  }
};

// Recomputations with the same origin. If an op has no origin, its kind or name replaces it.
struct Recomputed {
  std::string what;
  std::size_t ops = 0;    // distinct ops
  std::size_t times = 0;  // recomputations of them
  Ticks time;
  double share = 0;  // of all recomputed time, 0 to 1
};

// What a budget limits instead of live bytes, and what the plan takes of it.
struct Counted {
  Footprint footprint = Footprint::arena;
  Bytes bytes;
};

struct Report {
  std::string name;  // the graph's
  TickUnit tick = TickUnit::none;
  std::size_t ops = 0, tensors = 0;
  Bytes resident, input_bytes;
  Ticks base_duration;  // of computing each op once, without transforms
  std::optional<Bytes> budget;
  std::optional<Ticks> bound;             // lower bound of every plan's duration; set by the caller
  std::vector<PortfolioPart> parts = {};  // of the plan's search; set by the caller
  std::optional<Counted> counted = {};    // absent: the budget limits live bytes; set by the caller
  std::optional<layout::DeviceFootprint> device = {};  // of the run shown; set by the caller
  Run before;  // the given order, each tensor freed as early as possible
  // The peak of the given order with ops in place; empty if none of them can run so.
  std::optional<Bytes> peak_in_place = std::nullopt;
  // Of a graph from HLO text, what XLA takes (layout/xla_total.h): for the given order with ops in
  // place, and for the plan.
  std::optional<Bytes> xla_before = std::nullopt, xla_after = std::nullopt;
  std::optional<Run> after;            // the plan
  std::vector<Applied> transforms;     // of the plan
  std::vector<Recomputed> recomputed;  // of the plan, most time first
  // The same with each number in an origin replaced by '*', so that equal layers are one entry:
  // "layers.*.conv". Empty if that merges no entries.
  std::vector<Recomputed> recomputed_alike;
  std::string recomputed_by;       // the key of the groups: "origin", "kind" or "op"
  std::vector<Repetition> blocks;  // repeated blocks of the graph, the largest first
  std::string notice;  // a sentence if the plan has no steps or breaks a rule; else empty

  // The run that the report describes: the plan's if it has steps, else the given order's.
  const Run& shown() const { return after && !after->timeline.live.empty() ? *after : before; }
};

// The role in the graph, but `input` for a tensor without a producer whose role is not stated.
Role role_of(const Graph& graph, TensorId id);

// A plan that breaks a rule is reported up to that step; its timeline has the reason. Throws as
// apply_transforms does if the plan's transforms are not legal.
Report make_report(const Graph& graph, const Plan* plan = nullptr,
                   std::optional<Bytes> budget = std::nullopt);

}  // namespace lowtide::report

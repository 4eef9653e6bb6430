// What people are told about a graph and its plan: two runs side by side, what is live at their
// peaks, and what the overhead is spent on. Plain data, computed once by room sim; report_text.h
// and report_html.h draw it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/report/lanes.h"
#include "lowtide/report/repetition.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::report {

// A tensor in use during the step with the most bytes in use. What has no name is called "tensor 3"
// or "op 3", here and below.
struct LiveTensor {
  TensorId id;
  std::string name;
  Bytes bytes;
  double share = 0;  // of the peak, 0 to 1
  Role role = Role::activation;
  std::string origin;    // of the op that makes it; empty for an input or where unknown
  std::string producer;  // that op's name; empty for an input
};

struct RoleBytes {
  Role role = Role::activation;
  Bytes bytes;
  std::size_t tensors = 0;
};

// Steps in a row that are of one part of a split: from its first computation to its last.
struct Stretch {
  std::size_t transform = 0;
  std::int32_t part = 0;  // PartOf::kBefore: before the parts
  std::size_t depth = 0;  // in how many other splits it lies
  std::size_t first = 0, last = 0;
};

// What a plan's transform comes to.
struct Applied {
  std::string what;
  std::size_t ops = 0;              // that it has made
  std::size_t first = 0, last = 0;  // steps between which they run; of none: both 0
  Bytes peak;                       // in between
};

// One way to run the graph.
struct Run {
  std::shared_ptr<const TransformedGraph> transformed =
      nullptr;  // by the plan's transforms, if it has any
  Plan plan;    // on the graph that they make
  Timeline timeline;
  std::size_t peak_step = 0;  // as Timeline::peak_step
  std::string peak_what;      // "compute of op 3 "mm_3"", or "the start"
  std::size_t computations = 0, in_place = 0, transfers = 0;
  std::vector<std::size_t> recomputed_steps;  // computations of an op after its first, ascending
  Ticks recomputed_time;                      // that they take
  double overhead_percent = 0;                // over computing each op once
  Lanes lanes;                                // of a plan that copies to the host
  std::vector<LiveTensor> largest;            // at the peak, the largest first, at most kLargest
  std::vector<RoleBytes>
      by_role;      // at the peak, all live tensors, the largest first; no empty ones
  Bytes workspace;  // of the op computed at the peak
  std::vector<Stretch> stretches;  // by depth, then by step

  static constexpr std::size_t kLargest = 12;

  // That the steps are of; `original` is the one that is reported on.
  const Graph& graph(const Graph& original) const {
    return transformed ? transformed->graph : original;
  }
};

// The recomputations that share an origin: the op's origin or, where it has none, its kind or name.
struct Recomputed {
  std::string what;
  std::size_t ops = 0;    // different ones
  std::size_t times = 0;  // recomputations of them
  Ticks time;
  double share = 0;  // of all recomputed time, 0 to 1
};

struct Report {
  std::string name;  // the graph's
  TickUnit tick = TickUnit::none;
  std::size_t ops = 0, tensors = 0;
  Bytes resident, input_bytes;
  Ticks base_duration;  // of computing each op once, without transforms
  std::optional<Bytes> budget;
  std::optional<Ticks> bound;  // proven of every plan's duration; not set here, shown where it is
  std::vector<PortfolioPart> parts = {};  // of the plan's search; not set here, shown where it is
  Run before;                       // the graph's own order, everything freed as early as it may be
  std::optional<Run> after;         // the plan
  std::vector<Applied> transforms;  // of the plan
  std::vector<Recomputed> recomputed;  // of the plan, the most time first
  // The same with each number between separators as '*', so that layers which are alike stand
  // together: "layers.*.conv". Empty if that brings nothing together.
  std::vector<Recomputed> recomputed_alike;
  std::string recomputed_by;       // what groups them: "origin", "kind" or "op"
  std::vector<Repetition> blocks;  // of the graph, that repeat; the largest first
  std::string notice;  // a sentence if the plan has no steps or breaks a rule; else empty

  // The run that the report is about: the plan's if it has steps, else the graph's own.
  const Run& shown() const { return after && !after->timeline.live.empty() ? *after : before; }
};

// As the graph says, but `input` for a tensor that no op makes and of which nothing else is said.
Role role_of(const Graph& graph, TensorId id);

// A plan that breaks a rule is reported up to that step; its timeline says why. Throws as
// apply_transforms does for a plan whose transforms are not legal.
Report make_report(const Graph& graph, const Plan* plan = nullptr,
                   std::optional<Bytes> budget = std::nullopt);

}  // namespace lowtide::report

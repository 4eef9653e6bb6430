// What a plan file says: the plan, the problem it answers, what is claimed of it, and how it was
// found. Reading and writing is io/plan_json.h; check_plan.h judges one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/problem.h"

namespace lowtide {

// What a bound and a status are about: the graph that the plan's transforms make, or all that the
// techniques allowed could make.
enum class BoundScope : std::uint8_t { graph, techniques };
std::string_view to_string(BoundScope scope);

// The bytes that a budget limits: those live; the arena that holds all tensors at planned offsets;
// or those that an allocator has reserved.
enum class Footprint : std::uint8_t { live, arena, reserved };
inline constexpr std::array kFootprints = {Footprint::live, Footprint::arena, Footprint::reserved};
std::string_view to_string(Footprint footprint);

// Where a tensor lies in the arena from one step on, or the workspace of the op that the step
// computes.
struct PlannedOffset {
  static constexpr std::int32_t kStart = -1;
  std::int32_t step = kStart;  // that begins it; kStart: it is there before the first step
  TensorId tensor;             // in the file's indices; invalid for a workspace
  Bytes offset;
  bool operator==(const PlannedOffset&) const = default;
};

// What is said about the plan, or about the problem if there is none.
struct Claims {
  std::optional<Status> status = std::nullopt;
  std::optional<Ticks> duration = std::nullopt;
  std::optional<Bytes> peak = std::nullopt;
  std::optional<Ticks> bound = std::nullopt;
  std::optional<Ticks> duration_full_link = std::nullopt;  // of the plan, over its file's full link
  std::optional<BoundScope> bound_scope = std::nullopt;    // absent without transforms
  std::optional<Bytes> arena = std::nullopt;     // resident bytes, and what the offsets take
  std::optional<Bytes> reserved = std::nullopt;  // by the file's allocator
  bool operator==(const Claims&) const = default;
};

// How the plan was found: for people, nothing is checked. Absent values are left out.
struct FoundBy {
  std::string solver;
  std::optional<std::uint64_t> seed;
  std::optional<double> time_limit;        // seconds
  std::optional<std::int64_t> work_limit;  // units
  std::string stopped_by;
  std::string version;  // of Lowtide
  std::string note;
  std::optional<ModelClaim> model;   // of a narrower model
  std::vector<Incumbent> history;    // host peaks are not kept
  std::vector<PortfolioPart> parts;  // of a portfolio
};

struct PlanFile {
  std::string graph_hash, graph_name;
  std::string transform_hash = {};  // empty without transforms
  std::optional<Bytes> budget;      // absent: none
  Order order = Order::free;
  std::optional<Techniques> techniques = std::nullopt;  // what was allowed; absent: everything
  std::optional<Bytes> host_budget = std::nullopt;      // absent: no limit
  std::optional<Machine> full_link = std::nullopt;      // what the plan's machine was derated from
  Footprint footprint = Footprint::live;                // what the budget limits
  std::string allocator = {};                           // PyTorch's settings; for `reserved`
  std::optional<Bytes> alignment = std::nullopt;        // of the offsets; absent: 1
  Plan plan;                                            // no steps where no plan was found
  std::vector<PlannedOffset> offsets = {};              // by step; none: bytes lie anywhere
  Claims claims;
  std::optional<FoundBy> found_by;
  std::vector<std::string> warnings;  // of reading: whole sentences, without the file's name
};

// The file of an answer: the plan found for the problem, or that none was. `asked` says how it was
// sought (solver, seed, limits); how it went is taken from the outcome. Claims are of least time,
// whatever was asked for: that a plan needs the least memory is not among them. Nor does a file
// know the limits of what is live during single ops: what is proven under them is claimed only
// where it is true without them.
PlanFile plan_file(const Problem& problem, const Outcome& outcome, FoundBy asked);

}  // namespace lowtide

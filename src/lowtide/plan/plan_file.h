// The contents of a plan file: the plan, the question that it answers, claims about it, and how it
// was found. io/plan_json.h reads and writes it; check_plan.h checks it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/plan/footprint.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/question.h"

namespace lowtide {

// The scope of a bound and a status: the transformed graph of the plan, or all graphs that the
// allowed techniques can make.
enum class BoundScope : std::uint8_t { graph, techniques };
std::string_view to_string(BoundScope scope);

// Claims about the plan, or about the problem if there is no plan.
struct Claims {
  std::optional<Status> status = std::nullopt;
  std::optional<Ticks> duration = std::nullopt;
  std::optional<Bytes> peak = std::nullopt;
  std::optional<Ticks> bound = std::nullopt;
  std::optional<Ticks> duration_full_link = std::nullopt;  // of the plan, over full_link
  std::optional<BoundScope> bound_scope = std::nullopt;    // absent without transforms
  std::optional<Bytes> arena = std::nullopt;     // resident bytes, and what the offsets take
  std::optional<Bytes> reserved = std::nullopt;  // by the file's allocator
  bool operator==(const Claims&) const = default;
};

// How the plan was found: for information, not checked. Absent values are omitted.
struct FoundBy {
  std::string solver;
  std::optional<std::uint64_t> seed;
  std::optional<double> time_limit;        // seconds
  std::optional<std::int64_t> work_limit;  // units
  std::string stopped_by;
  std::string version;  // of Lowtide
  std::string note;
  std::optional<ModelClaim> model;   // of a narrower model
  std::vector<Incumbent> history;    // without host peaks
  std::vector<PortfolioPart> parts;  // of a portfolio
};

struct PlanFile {
  std::string graph_hash, graph_name;
  std::string transform_hash = {};  // empty without transforms
  std::optional<Bytes> budget;      // absent: none
  Order order = Order::free;
  std::optional<Techniques> techniques = std::nullopt;  // allowed ones; absent: all
  std::optional<Bytes> host_budget = std::nullopt;      // absent: no limit
  std::optional<Machine> full_link = std::nullopt;      // the plan's machine before derating
  Footprint footprint = Footprint::live;                // what the budget limits
  std::string allocator = {};                           // PyTorch's settings; for `reserved`
  std::optional<Bytes> alignment = std::nullopt;        // of the offsets; absent: 1
  Plan plan;                                            // without steps if no plan was found
  std::vector<PlannedOffset> offsets = {};              // by step; none: bytes lie anywhere
  Claims claims;
  std::optional<FoundBy> found_by;
  std::vector<std::string> warnings;  // from reading: whole sentences, without the file's name
};

// The file for an answer: the plan for the question, or that there is none. `asked` has the
// settings of the search (solver, seed, limits); its course is in the outcome. Claims are about
// least time, whatever the objective: that a plan needs the least memory is not among them. Files
// do not contain live limits either, so a bound proven under them is claimed only if it holds
// without them.
PlanFile plan_file(const Question& question, const Outcome& outcome, FoundBy asked);

}  // namespace lowtide

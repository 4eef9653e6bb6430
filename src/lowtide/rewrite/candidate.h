// A region that may be worth splitting, before a number of parts is chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/follow.h"
#include "lowtide/ops/dimensions/seed.h"

namespace lowtide::rewrite {

// An axis with fewer slices is not worth splitting.
inline constexpr std::int64_t kFewestSlices = 4;

struct Candidate {
  // How the candidate was found.
  enum class Kind : std::uint8_t {
    whole_graph,  // all ops that an axis reaches, if that is more than half of the ops
    reach,        // the same, if it is less
    head,         // the ops around the largest tensors
    suffix,       // the end of the forward with its backward
    ruled,        // the ops dominated by one op
    hot_spot,     // the same, for an op at the peak
    module,       // ops of one origin and phase
  };

  Kind kind = Kind::reach;
  bool sums = true;  // false: without ops whose large results are summed over parts, such as weight
                     // gradients
  std::vector<OpId> ops;               // convex, each carries the axis; in the given order
  std::vector<dimensions::Seed> axes;  // one for each component
  std::int64_t slices = 0;             // of the axis with fewest, ignoring crops
};

// An axis, with all ops that it reaches in a graph.
struct Family {
  dimensions::Seed seed;
  dimensions::Reach reach;
};

// The axes that are worth trying: those of inputs with data, and those of the largest tensors that
// ops make. No two reach the same ops. Ends early if `stops` returns true.
std::vector<Family> families(const Graph& graph, const std::function<bool()>& stops = {});

// The name: "whole graph", "reach", "head", "suffix", "ruled", "hot spot" or "module ORIGIN", with
// " without sums" appended if needed. `graph`: the candidate's.
std::string describe(const Graph& graph, const Candidate& candidate);

// The subset of the given ops that can be one region along the family's axis: convex, and each op
// reached if only the subset carries the axis. nullopt if fewer than two ops or fewer than four
// slices remain. Its kind is `reach`; the caller may change it.
std::optional<Candidate> shape_region(const Graph& graph, const Family& family,
                                      std::span<const OpId> ops);

// Regions along the axes of all families (MAGIS, section 5.1, and further ones): everything that an
// axis reaches; the loss head, which is the ops that touch the largest tensors, and those between;
// suffixes of the forward with their backward; the ops dominated by the dominators of ops at the
// peak; the modules that contain these. The most promising kinds come first; no two have the same
// ops. Ends early if `stops` returns true.
std::vector<Candidate> propose(const Graph& graph, const std::function<bool()>& stops = {});

// The possible numbers of parts of a region with so many slices, fewest first: equal parts or a
// shorter last one, with two slices or more.
std::vector<std::int64_t> parts_for(std::int64_t slices);

}  // namespace lowtide::rewrite

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

// An axis of fewer is not worth cutting.
inline constexpr std::int64_t kFewestSlices = 4;

struct Candidate {
  // What was looked at when it was found.
  enum class Kind : std::uint8_t {
    whole_graph,  // what an axis reaches, if that is more than half of the ops
    reach,        // the same, if it is less
    head,         // what lies around the largest tensors
    suffix,       // the end of the forward with what it leaves to the backward
    ruled,        // what hangs on the output of one op
    hot_spot,     // the same, around an op at which memory is fullest
    module,       // ops of one origin and phase
  };

  Kind kind = Kind::reach;
  bool sums = true;  // false: without the ops that make large sums over parts, as weight gradients
  std::vector<OpId> ops;               // convex, each carries the axis; in the given order
  std::vector<dimensions::Seed> axes;  // one for each component
  std::int64_t slices = 0;             // of the axis that has fewest, behind no crop
};

// An axis as far as it reaches in a graph.
struct Family {
  dimensions::Seed seed;
  dimensions::Reach reach;
};

// The axes that are worth a look: those of the inputs that are data, and those of the largest
// tensors that ops make. No two that carry the same ops. `stops` says when to look no further.
std::vector<Family> families(const Graph& graph, const std::function<bool()>& stops = {});

// For people: "whole graph", "reach", "head", "suffix", "ruled", "hot spot" or "module ORIGIN", and
// " without sums" behind that. `graph`: the candidate's.
std::string describe(const Graph& graph, const Candidate& candidate);

// Of the ops named, those that can be one region along the family's axis: convex, each reached when
// only they carry. Nothing if two or more do not remain, or fewer than four slices. Its kind is
// `reach`, until whoever has named the ops says otherwise.
std::optional<Candidate> shape_region(const Graph& graph, const Family& family,
                                      std::span<const OpId> ops);

// Regions along the axes of all families (MAGIS, section 5.1, and what pays beyond it): all that an
// axis reaches; the loss head, which is what reads or makes the largest tensors and what lies
// between; suffixes of the forward with what they leave to the backward; what the dominators of the
// ops at which memory is fullest rule; the modules in which these stand. Most promising kinds
// first; no two of the same ops. `stops` says when to look no further.
std::vector<Candidate> propose(const Graph& graph, const std::function<bool()>& stops = {});

// Into how many parts a region of so many slices can go, fewest first: equal parts or a shorter
// last one, of two slices or more.
std::vector<std::int64_t> parts_for(std::int64_t slices);

}  // namespace lowtide::rewrite

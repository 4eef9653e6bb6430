// A region with its costs in any number of parts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lowtide/device/part_price.h"
#include "lowtide/rewrite/candidate.h"
#include "lowtide/rewrite/profile.h"
#include "lowtide/transforms/region.h"
#include "lowtide/transforms/transform.h"
#include "lowtide/transforms/transformed_graph.h"

namespace lowtide::rewrite {

// The costs of a region in parts, for callers that compare several regions.
struct RegionInParts {
  // A tensor that all parts make; `together`: its joined bytes while they run, if it is needed
  // outside.
  struct Made {
    TensorId tensor;
    Bytes part;
    bool joined = false;
    Bytes together;
    Ticks joining;    // of all parts
    Bytes workspace;  // while a part of it is joined
  };

  std::vector<OpId> ops;         // in the given order
  std::vector<Ticks> time;       // by op: all parts, and the work before them
  std::vector<Bytes> workspace;  // by op: one part
  std::vector<Made> made;        // part by part, in order of production
  std::vector<TensorId> held;    // other tensors that parts read, live until the last part
};

class PricedRegion {
 public:
  // The candidate of that graph in so many parts. nullopt if that is illegal, if a part would have
  // to copy an operand, or if a price or a sum of prices exceeds 63 bits. The graph and the pricer
  // must outlive this object.
  static std::optional<PricedRegion> make(const Graph& graph, const Candidate& candidate,
                                          std::int64_t parts, const PartPricer& pricer);

  // The split with all prices; `now` has the file indices of the graph's ops and tensors.
  Split split(const TransformedGraph& now) const;
  // The profile of the split graph, without building it.
  Profile profile() const;
  RegionInParts in_parts() const;

 private:
  class Profiler;

  // Throws TransformRefused if the split is illegal.
  PricedRegion(const Graph& graph, const Candidate& candidate, std::int64_t parts,
               const PartPricer& pricer);
  // Throws OverflowError if any result of the other functions exceeds 63 bits.
  void check_sums() const;
  // The parts at which the size of parts changes: the first, and the last if it is shorter.
  std::vector<std::int64_t> sizes() const;
  // Of the i-th op of the region: all parts, and the work before them.
  Ticks all_parts(std::size_t i) const;
  // Of joining all parts of it.
  Ticks joining(TensorId tensor) const;
  PartPricer::Cost part_cost(OpId op, std::int64_t part) const;
  PartPricer::Cost before_cost(OpId op) const;
  PartPricer::Cost join_cost(TensorId tensor) const;
  Bytes part_bytes(TensorId tensor) const;
  Bytes put_together_bytes(TensorId tensor) const;

  const Graph& graph_;
  const PartPricer& pricer_;
  std::vector<dimensions::Seed> axes_;
  Labels labels_;
  Region region_;
  std::vector<std::vector<PartPricer::Cost>> costs_;  // by size of the part, then by op
};

// The hoist of a graph's backward, with priced scaling; nullopt if there is no barrier with one
// tangent of one element, or if the hoist is refused.
std::optional<Hoist> priced_hoist(const TransformedGraph& now, const PartPricer& pricer);

}  // namespace lowtide::rewrite

// A region and what it would cost in any number of parts.
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

// What a region in parts takes, for whoever looks at several together.
struct RegionInParts {
  // What all parts make; `together`: what is there of it while they run, if it is needed outside.
  struct Made {
    TensorId tensor;
    Bytes part;
    bool joined = false;
    Bytes together;
    Ticks joining;    // all parts of it
    Bytes workspace;  // while a part of it is joined
  };

  std::vector<OpId> ops;         // in the given order
  std::vector<Ticks> time;       // of each: all parts, and what it makes once before them
  std::vector<Bytes> workspace;  // of each: of a part
  std::vector<Made> made;        // part by part, in the order of their making
  std::vector<TensorId> held;    // read by parts, and there until the last: all else that they read
};

class PricedRegion {
 public:
  // The candidate, of that graph, in so many parts; nothing where that is not legal, where a part
  // would have to copy what it reads, or where a price or a sum of them is beyond 63 bits. The
  // graph and the pricer must outlive it.
  static std::optional<PricedRegion> make(const Graph& graph, const Candidate& candidate,
                                          std::int64_t parts, const PartPricer& pricer);

  // With every price in numbers; `now` says how the file calls the graph's ops and tensors.
  Split split(const TransformedGraph& now) const;
  // Of the graph that the split would make, without making it.
  Profile profile() const;
  RegionInParts in_parts() const;

 private:
  class Profiler;

  // TransformRefused where it is not legal.
  PricedRegion(const Graph& graph, const Candidate& candidate, std::int64_t parts,
               const PartPricer& pricer);
  // OverflowError where anything that the other functions compute is beyond 63 bits.
  void check_sums() const;
  // The places at which parts begin to be of another size: the first, and the last if that is
  // shorter.
  std::vector<std::int64_t> sizes() const;
  // Of the i-th op of the region: all parts, and what it makes once before them.
  Ticks all_parts(std::size_t i) const;
  // Of putting all parts of it together.
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
  std::vector<std::vector<PartPricer::Cost>> costs_;  // by size, then by the region's ops
};

// The hoist of a graph's backward, scaling priced; nothing where there is no barrier with one
// tangent of one element, or the hoist is refused.
std::optional<Hoist> priced_hoist(const TransformedGraph& now, const PartPricer& pricer);

}  // namespace lowtide::rewrite

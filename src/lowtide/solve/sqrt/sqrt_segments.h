// The forward of an order, divided into segments that are recomputed. See sqrt.cpp for the idea.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::solve::sqrt {

// single: only where one tensor crosses from earlier to later forward ops, as in the paper. narrow:
// where the fewest bytes cross near the position at which the segment is full.
enum class SqrtCuts : std::uint8_t { single, narrow };

// The positions of the order at which segments end, and the ops that each recomputes, in order.
struct Segmentation {
  std::vector<std::size_t> ends;
  std::vector<std::vector<OpId>> again;
};

class Segments {
 public:
  Segments(const Graph& graph, std::span<const OpId> order);

  bool has_single_cuts() const;
  Bytes saved() const {
    return Bytes(saved_before_.back());
  }  // made by the forward, read behind it

  // Algorithm 3 of the paper: a segment ends at the first cut after which it saves more than
  // `limit`. Ops after the last end are kept. Linear in the links of the forward.
  Segmentation divide(Bytes limit, SqrtCuts cuts) const;

  // The order, with the recomputations of the first `dropped` segments inserted before the first op
  // after the forward that reads one of their tensors.
  std::vector<OpId> sequence(const Segmentation& segments, std::size_t dropped) const;

 private:
  std::vector<std::size_t> choose_ends(std::int64_t limit, SqrtCuts cuts) const;
  std::vector<OpId> computed_again(std::size_t begin, std::size_t end,
                                   std::vector<std::uint8_t>& wanted) const;

  const Graph& graph_;
  std::span<const OpId> order_;
  std::size_t turn_;  // end of the forward
  std::vector<std::size_t> deadlines_;
  std::vector<std::size_t> last_read_;      // by tensor of the forward: last reader there, else 0
  std::vector<std::int64_t> saved_before_;  // by position of the forward, cumulative
  std::vector<std::int64_t> crossing_;      // bytes that cross each position
  std::vector<std::int32_t> width_;         // number of these tensors
};

}  // namespace lowtide::solve::sqrt

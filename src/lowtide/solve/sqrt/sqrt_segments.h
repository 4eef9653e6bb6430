// The forward part of an order, cut into segments that are computed again. See sqrt.cpp for the
// idea.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::solve::sqrt {

// single: only where one tensor crosses from the forward before to the forward after, as in the
// paper. narrow: wherever the fewest bytes cross near the place where the segment is full.
enum class SqrtCuts : std::uint8_t { single, narrow };

// Positions of the order at which segments end, and what each computes again, in order.
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
  // `limit`. What is left behind the last end is kept. Linear in the links of the forward.
  Segmentation divide(Bytes limit, SqrtCuts cuts) const;

  // The order, with what the first `dropped` segments compute again put in before the first op
  // behind the forward that reads something of it.
  std::vector<OpId> sequence(const Segmentation& segments, std::size_t dropped) const;

 private:
  std::vector<std::size_t> choose_ends(std::int64_t limit, SqrtCuts cuts) const;
  std::vector<OpId> computed_again(std::size_t begin, std::size_t end,
                                   std::vector<std::uint8_t>& wanted) const;

  const Graph& graph_;
  std::span<const OpId> order_;
  std::size_t turn_;  // where the forward ends
  std::vector<std::size_t> deadlines_;
  std::vector<std::size_t> last_read_;      // in the forward, of each tensor made in it; else 0
  std::vector<std::int64_t> saved_before_;  // at each position of the forward, summed up
  std::vector<std::int64_t> crossing_;      // bytes that cross each position
  std::vector<std::int32_t> width_;         // how many tensors that is
};

}  // namespace lowtide::solve::sqrt

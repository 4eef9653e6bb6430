// The domain D of Moccasin's times: the events, and the events at which an interval may start or
// end. Private to the solver; see events.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::exact::moccasin {

enum class Domain : std::uint8_t {
  free,    // (9): one event for each interval, in any order
  staged,  // (11): stage j first recomputes what op j of the order needs, then computes op j
};

class Events {
 public:
  // `order`: of the stages, or any topological order for `free`. `intervals`: C_v of each op, at
  // least 1; an op that is not recomputable gets 1.
  Events(const Graph& graph, Domain domain, std::vector<OpId> order, std::vector<int> intervals);

  Domain domain() const { return domain_; }
  int intervals(OpId op) const { return intervals_[op.index()]; }
  std::span<const OpId> order() const { return order_; }
  // 1 for the first op.
  std::size_t position(OpId op) const { return position_[op.index()]; }
  // The event of the op with this position in a stage. The first computation of op j is event(j,
  // j).
  std::int64_t event(std::size_t stage, std::size_t position) const {
    return static_cast<std::int64_t>((stage - 1) * stride() + position);
  }
  // The distance between the events of one op in consecutive stages.
  std::size_t stride() const { return domain_ == Domain::staged ? order_.size() + 1 : 1; }
  // The event after all others: tensors that are live at it are live at the end.
  std::int64_t end() const { return end_; }

  struct Range {
    std::int64_t low, high;
    bool empty() const { return low > high; }
  };
  // The range of starts of the k-th interval, from 0: stages, or events in the domain `free`.
  // Empty: the interval is impossible, so an op may have fewer intervals than requested.
  Range starts(OpId op, int k) const;
  // The last event at which the tensor may be read; 0 if it has no reader.
  std::int64_t last_read(TensorId tensor) const;

 private:
  void find_stages();
  void find_ranges();

  const Graph& graph_;
  Domain domain_;
  std::vector<OpId> order_;
  std::vector<int> intervals_;
  std::vector<std::size_t> position_;
  std::vector<std::size_t> last_stage_;  // staged: the last in which computing the op may be useful
  std::vector<std::int64_t> earliest_, latest_;  // free: range of the first interval
  std::int64_t end_ = 0;
};

}  // namespace lowtide::solve::exact::moccasin

// A smaller program that contains only the critical steps of an order, and proves bounds of the
// problem itself. Private to the solver; see frontier.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/engines/mip_model.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve::exact::checkmate {

class FrontierProgram {
 public:
  // For first computations in this order. `every`: from the first critical step on, all steps are
  // critical, and tensors that live through a segment while an op is recomputed in it are counted.
  // If the limits stop the constructor, the program is incomplete and must not be used.
  FrontierProgram(const Problem& problem, std::vector<OpId> order, bool every, Limits& limits);

  engines::MipModel& model() { return model_; }
  void start(std::span<const OpId> sequence);
  // A sequence in the order with the recomputations of a solution. It may exceed the budget between
  // the critical steps.
  std::vector<OpId> sequence(std::span<const double> values) const;
  // The bound that an objective proves: every plan in this order within the budget takes at least
  // as long.
  Ticks bound(double objective) const;

 private:
  static constexpr std::int32_t kNone = -1;
  std::size_t segments() const { return critical_.size() + 1; }
  // The segment in which the op at this position is first computed.
  std::size_t segment_of(std::size_t position) const;
  void find_critical(bool every);
  void add_columns();
  // Adds a row: the tensor is available during this segment if `run` is 1 (kNone: always).
  void add_need(std::size_t segment, TensorId tensor, std::int32_t run);
  void add_rows(std::size_t segment);
  double with_slack(Bytes room) const;
  void add_memory(std::size_t segment);
  void add_through(std::size_t segment);
  // Whether the tensor was made before the segment begins.
  bool earlier(std::size_t segment, TensorId tensor) const;

  const Problem& problem_;
  const Graph& graph_;
  std::vector<OpId> order_;
  std::vector<std::size_t> position_;
  std::vector<std::size_t> critical_;     // positions
  std::vector<std::size_t> last_needed_;  // for each op, the last segment that may recompute it
  std::int64_t tick_unit_ = 1;
  engines::MipModel model_;
  // Columns. R: by segment and op. L: live at the end of a segment, by segment and tensor.
  std::vector<std::vector<std::int32_t>> again_, live_;
};

}  // namespace lowtide::solve::exact::checkmate

// A smaller program that sees only the critical first computations of an order, and proves bounds
// of the problem itself. Private to the solver; see frontier.cpp.
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
  // For first computations in this order. `every`: all steps from the first critical one on are
  // seen, and what lives through a segment while something is made again in it. Stops half-way, and
  // is not to be used, if the limits say stop.
  FrontierProgram(const Problem& problem, std::vector<OpId> order, bool every, Limits& limits);

  engines::MipModel& model() { return model_; }
  void start(std::span<const OpId> sequence);
  // A sequence in the order that makes again what a solution makes again; it may need more than
  // the budget between the critical steps.
  std::vector<OpId> sequence(std::span<const double> values) const;
  // No plan in this order that keeps the budget is shorter, if the program proves this objective.
  Ticks bound(double objective) const;

 private:
  static constexpr std::int32_t kNone = -1;
  std::size_t segments() const { return critical_.size() + 1; }
  // Of the op at this position, the segment in which it is first computed.
  std::size_t segment_of(std::size_t position) const;
  void find_critical(bool every);
  void add_columns();
  // A row that says: the tensor is there during this segment, if `run` is (kNone: always).
  void add_need(std::size_t segment, TensorId tensor, std::int32_t run);
  void add_rows(std::size_t segment);
  double with_slack(Bytes room) const;
  void add_memory(std::size_t segment);
  void add_through(std::size_t segment);
  // Whether it was made before the segment begins.
  bool earlier(std::size_t segment, TensorId tensor) const;

  const Problem& problem_;
  const Graph& graph_;
  std::vector<OpId> order_;
  std::vector<std::size_t> position_;
  std::vector<std::size_t> critical_;     // positions
  std::vector<std::size_t> last_needed_;  // of each op, the last segment that may make it again
  std::int64_t tick_unit_ = 1;
  engines::MipModel model_;
  // R: by segment and op. L: live at the end of a segment, by segment and tensor.
  std::vector<std::vector<std::int32_t>> again_, live_;
};

}  // namespace lowtide::solve::exact::checkmate

// The optimisation problem (1) to (8) of the Moccasin paper as a model for CP-SAT. Private to the
// solver; see retention.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/engines/cp_model.h"
#include "lowtide/solve/exact/moccasin/events.h"

namespace lowtide::solve::exact::moccasin {

struct RetentionSettings {
  bool memory_first = false;  // phase 1: the objective is (12), the budget no constraint but (13)
  bool reservoir = false;     // (5) by reservoirs, as in the paper; else by literals
  bool log_lengths = false;   // intervals of log-spaced lengths alone, as the authors' program has
};

// A sequence of so many ops as the events have it: where they are staged, each op of a stage once,
// in the order's sequence.
std::vector<OpId> at_events(const Events& events, std::size_t ops, std::span<const OpId> sequence);

class RetentionModel {
 public:
  // Stops half-way, and is not to be used, if the limits say stop.
  RetentionModel(const Problem& problem, const Events& events, const RetentionSettings& settings,
                 Limits& limits);

  // Some op alone needs more than the budget, whatever else is done; the model is not to be used.
  bool hopeless() const { return capacity_ < 0 && !settings_.memory_first; }
  const engines::CpModel& model() const { return model_; }

  // The values of the plan that computes these ops in this order, as far as the model has them.
  void hint(std::span<const OpId> sequence);

  // What a solution computes, in its order; none if the values are no solution.
  std::optional<std::vector<OpId>> sequence(std::span<const std::int64_t> values) const;

  // Phase 2: the duration that this objective stands for, rounded up to ticks; phase 1: the bytes.
  std::int64_t unscaled(double objective) const;

 private:
  struct Interval {
    engines::CpExpr start;     // an event
    std::int64_t first, last;  // that it can be
    engines::CpVar active;
    std::vector<engines::CpVar> ends;  // of each tensor that the op makes
  };
  // A tensor held, wherever it comes from.
  struct Held {
    engines::CpExpr start;
    std::int64_t first;  // the earliest start
    engines::CpVar active, end;
  };

  bool spend(std::size_t parts);
  void scale();
  void add_intervals(OpId op);
  void add_end(TensorId tensor, const Interval& interval, engines::CpVar& end);
  void add_precedence();
  void add_precedence_literals(TensorId tensor, const engines::CpExpr& at, std::int64_t latest,
                               engines::CpVar active);
  void add_precedence_reservoir(TensorId tensor, const engines::CpExpr& at, engines::CpVar active);
  void add_rules_of_order();
  void add_memory();
  void add_objective();
  std::vector<Held> held(TensorId tensor) const;
  std::vector<std::int64_t> with_lengths(const Interval& interval);
  engines::CpExpr start_expr(OpId op, engines::CpVar stage_or_event) const;
  // a - b >= at_least, if all of `enforce` hold.
  void add_after(const engines::CpExpr& a, const engines::CpExpr& b, std::int64_t at_least,
                 engines::CpModel::Literals enforce = {});

  const Problem& problem_;
  const Graph& graph_;
  const Events& events_;
  RetentionSettings settings_;
  Limits& limits_;
  engines::CpModel model_;
  engines::CpVar one_;
  std::int64_t byte_unit_ = 1, tick_unit_ = 1, capacity_ = 0;
  std::vector<std::vector<Interval>> intervals_;  // of each op
  std::vector<std::int64_t> lengths_;             // log-spaced, once they are asked for
  std::vector<engines::CpVar> input_end_;         // of each tensor that is a releasable input
  engines::CpVar peak_ = 0, excess_ = 0;          // phase 1: M_var and tau
};

}  // namespace lowtide::solve::exact::moccasin

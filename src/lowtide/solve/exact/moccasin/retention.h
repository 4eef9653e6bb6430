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
  bool memory_first = false;  // phase 1: the objective is (12), and the budget appears in (13) only
  bool reservoir = false;     // (5) by reservoirs, as in the paper; otherwise by literals
  bool log_lengths = false;   // only log-spaced lengths of intervals, as in the authors' program
};

// The sequence of `ops` ops in the order of events. Staged: each op of a stage once, in the order
// of the sequence.
std::vector<OpId> at_events(const Events& events, std::size_t ops, std::span<const OpId> sequence);

class RetentionModel {
 public:
  // If the limits stop the constructor, the model is incomplete and must not be used.
  RetentionModel(const Problem& problem, const Events& events, const RetentionSettings& settings,
                 Limits& limits);

  // Some op needs more than the budget by itself; the model must not be used.
  bool hopeless() const { return capacity_ < 0 && !settings_.memory_first; }
  const engines::CpModel& model() const { return model_; }

  // Hints the values of the plan that computes these ops in this order, as far as the model has
  // them.
  void hint(std::span<const OpId> sequence);

  // The computations of a solution, in order; nullopt if the values are no solution.
  std::optional<std::vector<OpId>> sequence(std::span<const std::int64_t> values) const;

  // Phase 2: the duration for this objective, rounded up to ticks. Phase 1: the bytes.
  std::int64_t unscaled(double objective) const;

 private:
  struct Interval {
    engines::CpExpr start;     // an event
    std::int64_t first, last;  // range of the start
    engines::CpVar active;
    std::vector<engines::CpVar> ends;  // for each tensor that the op makes
  };
  // An interval in which a tensor is held, of an op or of an input.
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
  // Adds a - b >= at_least, enforced by all of `enforce`.
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
  std::vector<std::int64_t> lengths_;             // log-spaced, filled in at first use
  std::vector<engines::CpVar> input_end_;         // for each releasable input
  engines::CpVar peak_ = 0, excess_ = 0;          // phase 1: M_var and tau
};

}  // namespace lowtide::solve::exact::moccasin

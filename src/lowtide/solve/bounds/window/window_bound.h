// A bound over several cut points at once. Private to the solver. window_bound.cpp finds
// multipliers, window_certify.cpp computes the bound that they prove.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/bounds/cut/cut_search.h"
#include "lowtide/solve/bounds/window/window.h"

namespace lowtide::solve::bounds {

class WindowBound {
 public:
  // A decision: the tensor is live at a cut point, or not.
  struct Fixed {
    std::size_t moment;
    TensorId tensor;
    bool live;
  };
  // The iterates, from which a later run can continue.
  struct Start {
    std::vector<float> x, dual;
    std::size_t size() const { return x.size() + dual.size(); }
  };

  // `moments`: cut points that follow one another in every plan of the problem, as critical_chain
  // returns them.
  WindowBound(const Problem& problem, std::vector<CutPoint> moments, const CutScale& scale,
              WindowSet set);

  // So many times: some iterations that propose multipliers, and the cuts that prove their bound.
  // Fewer if stopped, or after long without gain.
  void run(std::int64_t rounds, Limits& limits);
  bool finished() const { return finished_; }
  // Proven: the bound exceeds the time of running everything again in every interval, so no plan
  // that obeys the decisions keeps the budget.
  bool infeasible() const;
  // A lower bound on the time beyond the base duration.
  Ticks bound() const { return scale_.ticks(best_); }

  // Starts again from `start`, for the plans that obey the decisions.
  void begin(const Start& start, std::span<const Fixed> fixed);
  Start start() const;
  // Whether the tensors decided to be live fit at each cut point.
  bool has_room_for(std::span<const Fixed> fixed) const;
  // Of the undecided tensors that the present solution holds in part, the one with most bytes, and
  // whether more than half of it is held; nullopt if there is none.
  std::optional<Fixed> in_part() const;

  // The price of a byte at a cut point, in internal units.
  double price(std::size_t moment) const { return dual_[memory_begin() + moment]; }
  // The bytes over the budget at another cut point in the present solution, which may hold tensors
  // in part; nullopt unless that cut point comes before or after all others in every plan. `soon`:
  // assume that ops which run again between the neighbouring cut points do so before it. An
  // estimate, to select cut points. Linear.
  std::optional<double> overload(const CutPoint& cut, bool soon) const;

 private:
  // x[plus] + x[also] - x[minus] >= least; index -1: no variable.
  struct Row {
    std::int32_t plus, also, minus;
    double least;
  };
  // The indices of a window's variables and rows.
  struct Place {
    std::vector<std::int32_t> keep_row, carry_row;  // by item; -1: none
    std::vector<std::int32_t> again;                // variables, by op
    std::vector<std::int32_t> split_row;            // by op, unless the window has one interval
  };
  // If `again` is 1, the op runs in one of the intervals: x[runs...] - x[again] >= 0.
  struct Split {
    std::int32_t first_run, runs, again;
  };

  std::int32_t variable(double cost);
  void fix(std::span<const Fixed> fixed);
  void index_windows();
  void place(std::size_t window);
  void set_steps();
  void iterate();
  void restart(bool from_average);
  // The bound that the multipliers prove, scaled; 0 if stopped.
  std::int64_t certify(std::span<const double> duals, Limits& limits);
  // Divides the prices of holding between windows, and returns those of tensors decided to be live.
  std::int64_t share_holding(std::span<const double> duals);
  void share_time(std::span<const double> duals);
  std::int64_t scaled(double dual) const;
  // Whether the op has run by the cut point in every plan, so that another run costs its time.
  // Otherwise the run after the cut point may be its first.
  bool has_run(OpId op, std::size_t moment) const {
    return moments_[moment].side[op.index()] == Side::before;
  }
  std::size_t splits_begin() const { return rows_.size(); }
  std::size_t memory_begin() const { return rows_.size() + splits_.size(); }

  const Problem& problem_;
  CutScale scale_;
  std::vector<CutPoint> moments_;
  std::vector<Window> windows_;
  std::vector<Place> places_;
  std::vector<std::vector<std::int32_t>> live_;  // variables by cut point and tensor; -1: none
  std::vector<std::int32_t> runs_;               // variables of the runs of each op, see first_run_
  std::vector<std::int32_t> first_run_;          // by op; one run for each interval
  std::vector<std::int64_t> room_;               // bytes at each cut point
  std::vector<Row> rows_;
  std::vector<Split> splits_;
  std::vector<std::vector<std::pair<std::int32_t, double>>> memory_;
  double byte_unit_ = 1, tick_unit_ = 1;

  std::vector<double> least_, most_;      // range of each variable
  std::vector<std::vector<Hold>> fixed_;  // by cut point and tensor
  std::vector<double> cost_, x_, extrapolated_, gradient_, dual_, step_, dual_step_;
  std::vector<double> x_sum_, dual_sum_, x_start_, dual_start_;
  double weight_ = 1, sum_count_ = 0;

  // Integers, by window: prices of keeping and of passing on for items, of time for ops.
  std::vector<std::vector<std::int64_t>> hold_, carry_, time_;
  std::vector<std::int64_t> multiplier_;  // by cut point
  std::int64_t best_ = 0, length_ = 60;
  int idle_ = 0, patience_ = 3;
  bool finished_ = false;
};

}  // namespace lowtide::solve::bounds

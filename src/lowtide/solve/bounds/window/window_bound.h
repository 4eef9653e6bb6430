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
  // That a tensor is live at a moment, or is not.
  struct Fixed {
    std::size_t moment;
    TensorId tensor;
    bool live;
  };
  // Where the iterations are.
  struct Start {
    std::vector<float> x, dual;
    std::size_t size() const { return x.size() + dual.size(); }
  };

  // `moments` follow one another in every plan of the problem, as critical_chain has them.
  WindowBound(const Problem& problem, std::vector<CutPoint> moments, const CutScale& scale,
              WindowSet set);

  // So many times: some iterations that propose multipliers, and the cuts that they prove. Fewer if
  // stopped, or if nothing has been gained for long.
  void run(std::int64_t rounds, Limits& limits);
  bool finished() const { return finished_; }
  // It would take longer than running everything again in every interval: nothing that obeys what
  // is fixed keeps the budget.
  bool infeasible() const;
  // Proven beside the base duration.
  Ticks bound() const { return scale_.ticks(best_); }

  // Begins anew, from here, for the plans that obey these.
  void begin(const Start& start, std::span<const Fixed> fixed);
  Start start() const;
  // Whether there is room for what is fixed as live, at each moment.
  bool has_room_for(std::span<const Fixed> fixed) const;
  // What the solution at hand holds in part, of all that is not fixed the most bytes, and whether
  // it holds more than half of that; none if nothing.
  std::optional<Fixed> in_part() const;

  // What a byte costs there, in units of its own.
  double price(std::size_t moment) const { return dual_[memory_begin() + moment]; }
  // Of the solution at hand, which may hold tensors in part: how many bytes it is over the budget
  // at another moment, if that follows the others, or comes before them, in every plan. `soon`:
  // what runs again between the moments around it does so before it. A guess, to choose moments by.
  // Linear.
  std::optional<double> overload(const CutPoint& cut, bool soon) const;

 private:
  // x[plus] + x[also] - x[minus] >= least; -1 stands for no variable.
  struct Row {
    std::int32_t plus, also, minus;
    double least;
  };
  // Where a window's variables and rows are.
  struct Place {
    std::vector<std::int32_t> keep_row, carry_row;  // of items; -1: none
    std::vector<std::int32_t> again;                // variables of ops
    std::vector<std::int32_t> split_row;            // of ops, unless the window is a unit
  };
  // At least one of these runs if `again` does: x[runs...] - x[again] >= 0.
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
  // The value that the multipliers prove, scaled; 0 if stopped.
  std::int64_t certify(std::span<const double> duals, Limits& limits);
  // Divides the prices of holding between windows, and returns those of what is fixed as live.
  std::int64_t share_holding(std::span<const double> duals);
  void share_time(std::span<const double> duals);
  std::int64_t scaled(double dual) const;
  // Whether the op has run by the moment in every plan, so that another run costs its time. If not,
  // the one after the moment may be its first.
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
  std::vector<std::vector<std::int32_t>> live_;  // variables by moment and tensor; -1: none
  std::vector<std::int32_t> runs_;               // variables of each op's runs, see first_run_
  std::vector<std::int32_t> first_run_;          // of an op; one for each interval
  std::vector<std::int64_t> room_;               // bytes at each moment
  std::vector<Row> rows_;
  std::vector<Split> splits_;
  std::vector<std::vector<std::pair<std::int32_t, double>>> memory_;
  double byte_unit_ = 1, tick_unit_ = 1;

  std::vector<double> least_, most_;      // of variables
  std::vector<std::vector<Hold>> fixed_;  // by moment and tensor
  std::vector<double> cost_, x_, extrapolated_, gradient_, dual_, step_, dual_step_;
  std::vector<double> x_sum_, dual_sum_, x_start_, dual_start_;
  double weight_ = 1, sum_count_ = 0;

  // Integers, by window: prices of keeping and of carrying on for items, of time for ops.
  std::vector<std::vector<std::int64_t>> hold_, carry_, time_;
  std::vector<std::int64_t> multiplier_;  // by moment
  std::int64_t best_ = 0, length_ = 60;
  int idle_ = 0, patience_ = 3;
  bool finished_ = false;
};

}  // namespace lowtide::solve::bounds

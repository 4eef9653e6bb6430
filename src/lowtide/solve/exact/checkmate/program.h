// Checkmate's integer program for one order of the ops. Private to the solver; see program.cpp.
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

struct ProgramSettings {
  bool relaxed = false;    // all variables may be fractions
  bool tight = true;       // intervals in which tensors are held, instead of FREE and kappa
  double allowance = 1.0;  // share of the budget
};

// The tensors kept from each stage to the next: kept[stage][tensor], stages from 0. The entry after
// the last stage has the tensors that are live at the end.
using Checkpoints = std::vector<std::vector<std::uint8_t>>;

// HiGHS's relative tolerance.
constexpr double kTolerance = 1e-6;

// Bytes by which a program raises the budget, so that HiGHS's tolerance rejects no solution that
// keeps the budget exactly, if sizes differ by orders of magnitude. A bound for the larger budget
// also holds for the budget, and every solution is priced before it counts as a plan.
double slack(const Graph& graph, double room);

class Program {
 public:
  // If the limits stop the constructor, or the program gets too large, it is incomplete and must
  // not be used.
  Program(const Problem& problem, std::vector<OpId> order, const ProgramSettings& settings,
          Limits& limits);

  engines::MipModel& model() { return model_; }
  bool too_large() const;
  std::size_t stages() const { return order_.size(); }

  void start(std::span<const OpId> sequence);
  // The computations of an integral solution, stage by stage.
  std::vector<OpId> sequence(std::span<const double> values) const;
  // The duration of a solution in the model: every R counts, useful or not.
  Ticks duration(std::span<const double> values) const;
  // The duration that an objective proves for all solutions, without HiGHS's tolerances.
  Ticks unscaled(double objective) const;

  // The share of each tensor that a fractional solution keeps from each stage to the next.
  std::vector<std::vector<double>> kept(std::span<const double> values) const;
  // The second stage of rounding: the fewest computations that these checkpoints need.
  std::vector<OpId> completed(const Checkpoints& kept) const;

 private:
  static constexpr std::int32_t kNone = -1;
  void add_computations();
  void add_checkpoints(Limits& limits);
  bool stops(Limits& limits);  // charges the entries added since the last call
  void add_memory(std::size_t stage);
  // The changes of memory before the op of each position of the stage, from 0.
  using Changes = std::vector<std::vector<engines::MipTerm>>;
  Changes held(std::size_t stage);   // of the tight form
  Changes freed(std::size_t stage);  // of the paper's form
  void add_habits(std::size_t stage);
  double units(Bytes bytes) const { return static_cast<double>(bytes.count()) / bytes_unit_; }
  std::size_t last_stage(OpId op) const { return last_stage_[op.index()]; }
  bool charged(TensorId tensor) const { return !graph_.is_input(tensor); }
  std::int32_t computes(std::size_t stage, OpId op) const {
    return computes_[stage][position_[op.index()]];
  }

  const Problem& problem_;
  const Graph& graph_;
  ProgramSettings settings_;
  std::vector<OpId> order_;
  std::vector<std::size_t> position_, last_stage_;
  engines::MipModel model_;
  std::size_t counted_ = 0;  // entries that have been charged
  double ticks_unit_, bytes_unit_, capacity_ = 0;
  // Columns, by stage and by position or tensor; kNone if the variable is 0 in every solution.
  std::vector<std::vector<std::int32_t>> computes_, keeps_;
};

}  // namespace lowtide::solve::exact::checkmate

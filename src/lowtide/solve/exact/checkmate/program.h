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
  bool tight = true;       // what is held by intervals, instead of what is freed through kappa
  double allowance = 1.0;  // of the budget
};

// What is kept over the begin of each stage: kept[stage][tensor], stages from 0. The one after the
// last has what is live at the end.
using Checkpoints = std::vector<std::vector<std::uint8_t>>;

// Relative, of HiGHS.
constexpr double kTolerance = 1e-6;

// Bytes that a budget is raised by in a program, so that HiGHS refuses no solution that keeps it to
// the byte, where sizes differ by orders of magnitude. What it proves of more is true of less; and
// what it finds is no plan before it has been priced.
double slack(const Graph& graph, double room);

class Program {
 public:
  // Stops half-way, and is not to be used, if the limits say stop or it grows too large.
  Program(const Problem& problem, std::vector<OpId> order, const ProgramSettings& settings,
          Limits& limits);

  engines::MipModel& model() { return model_; }
  bool too_large() const;
  std::size_t stages() const { return order_.size(); }

  void start(std::span<const OpId> sequence);
  // What a whole solution computes, stage by stage.
  std::vector<OpId> sequence(std::span<const double> values) const;
  // Its duration as the model counts it: every R, whether it is of use or not.
  Ticks duration(std::span<const double> values) const;
  // What an objective proves of every solution's duration, HiGHS's tolerances left out.
  Ticks unscaled(double objective) const;

  // How much of each tensor a (fractional) solution keeps over the begin of each stage.
  std::vector<std::vector<double>> kept(std::span<const double> values) const;
  // The second stage of rounding: the least that must be computed for these checkpoints, and what
  // that comes to.
  std::vector<OpId> completed(const Checkpoints& kept) const;

 private:
  static constexpr std::int32_t kNone = -1;
  void add_computations();
  void add_checkpoints(Limits& limits);
  bool stops(Limits& limits);  // charges what has been added since the last time
  void add_memory(std::size_t stage);
  // By how much memory changes before the op of each position of the stage, from 0.
  using Changes = std::vector<std::vector<engines::MipTerm>>;
  Changes held(std::size_t stage);   // the tight form
  Changes freed(std::size_t stage);  // the paper's
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
  // Columns, by stage and by position or tensor; kNone where it is 0 in every solution.
  std::vector<std::vector<std::int32_t>> computes_, keeps_;
};

}  // namespace lowtide::solve::exact::checkmate

// The bound that multipliers on the memory of several stages prove, with some runs decided. Private
// to the solver; see stage_bound.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/bounds/common/max_flow.h"
#include "lowtide/solve/bounds/cut/cut_search.h"
#include "lowtide/solve/bounds/stage/stage_model.h"

namespace lowtide::solve::bounds {

// For a cell: whether its op runs there. For a turn: whether it is taken.
enum class Decision : std::uint8_t { open, no, yes };

class StageBound {
 public:
  StageBound(const Problem& problem, std::span<const std::size_t> stages);

  // Inactive stages have unlimited memory in bounds.
  bool heeded(std::size_t stage) const { return heeded_[stage] != 0; }
  void heed(std::size_t stage) { heeded_[stage] = 1; }
  std::size_t stages() const { return model_.room.size(); }
  std::size_t cells() const { return model_.cells.size(); }
  std::size_t decisions() const { return runs_.size(); }
  std::size_t cell_of(std::size_t node) const;
  Ticks time(std::size_t cell) const { return problem_.graph.time(model_.cells[cell].op); }
  double scaled(Ticks time) const;

  // The decisions, by node: cells, then turns.
  Decision decided(std::size_t node) const { return runs_[node]; }
  // Decides a node, and its consequences for the cell of a turn and the turns of a cell. The node
  // must be open.
  void decide(std::size_t node, Decision run);
  // Decides the nodes that follow from the memory of single stages. Returns false if no plan obeys.
  bool propagate();
  // The number of decisions, and a return to an earlier number.
  std::size_t mark() const { return trail_.size(); }
  void undo(std::size_t mark);
  // Rebuilds the network for the active stages, without decided nodes, and returns the open nodes
  // in it. Until the next call no decision made so far may be undone. Linear.
  void build();
  std::span<const std::int32_t> in_question() const { return in_question_; }

  // Minimises over the runs that obey the decisions. Returns false if stopped.
  bool evaluate(std::span<const double> multipliers, Limits& limits);
  // By the last evaluation: a lower bound on the time beyond the base duration, in integers, for
  // all plans that obey the decisions.
  Ticks proven() const { return scale_.ticks(value_); }
  double value() const { return static_cast<double>(value_); }  // scaled
  // The bytes by which each stage exceeds its memory, in the units of the multipliers.
  std::span<const double> over() const { return over_; }
  // Whether the cut fits at every stage, and the time of its runs.
  bool fits() const { return fits_; }
  Ticks cost() const { return cost_; }
  bool runs(std::size_t node) const {
    return place_[node] >= 0 && flow_.on_source_side(place_[node]);
  }
  // If every cell is decided: whether the tensors that each active stage must keep fit. Also true
  // if the numbers are too large to tell, or if stopped.
  bool can_fit(Limits& limits);
  // If only the cells of the last cut run, decided or not: the stage that most exceeds its memory,
  // active or not; -1 if all fit, or if that cannot be told.
  std::int32_t most_over(Limits& limits);
  // A lower bound for all plans that obey the decisions and differ from the cut in this open cell.
  Ticks proven_against(std::size_t cell) const;

 private:
  // A hold whose reader is in the network; nodes of the flow.
  struct Price {
    std::int32_t reader, maker, arc, stage;
    std::int64_t bytes;
  };

  void set(std::size_t node, Decision run);
  void find_places();
  void price(std::span<const double> multipliers);
  void join();
  void look();
  // One op may run in several cells, so these times may sum to more than the graph's.
  void add_cost(std::size_t cell) { cost_ += std::min(time(cell), Ticks::max() - cost_); }
  std::int64_t price_of(std::int32_t stage, std::int64_t bytes) const;

  const Problem& problem_;
  StageModel model_;
  CutScale scale_;
  std::vector<Decision> runs_;
  std::vector<std::uint8_t> heeded_;
  std::vector<std::size_t> trail_;
  std::vector<std::int64_t> left_;  // bytes, by stage, after those that decisions keep there
  std::vector<std::vector<std::int32_t>> turns_of_, wants_of_;  // turns of a cell; wants of a node

  // Since the last build.
  MaxFlow flow_;
  std::vector<std::int32_t> place_;  // node of the flow; -1: on the sink's side in any case
  std::vector<std::int32_t> in_question_, present_, unbounded_;
  std::vector<StageModel::Want> wants_;
  std::vector<Price> prices_;
  std::vector<std::int64_t> room_;

  MaxFlow whole_;  // all nodes, stages and links, with bytes as capacities
  std::vector<std::int32_t> whole_joins_;
  std::vector<Price> whole_holds_;

  std::vector<std::int64_t> multiplier_, kept_;
  std::vector<double> over_;
  std::int64_t constant_ = 0, value_ = 0;
  Ticks cost_;
  bool fits_ = false;
};

}  // namespace lowtide::solve::bounds

// Problem: model the tensors kept at several cut points, and the runs that this requires, as a
// network.
//
// Idea: at a stage (the first computation of one op) a tensor with later uses is between two of
// its uses. If it is not live there, its op runs again after the stage and before the second of
// these uses. Each input of that run is live at the stage; or has later uses and an own run if it
// is not live; or is dead: then it takes room at the stage, or is recomputed before the run that
// reads it. Overlapping intervals in which an op must run again are merged. The resulting cells
// are disjoint, so a run in one cell does not count for another.
//
// Invariant: the runs of every plan satisfy the constraints of the network. At each stage the plan
// holds at least the tensors of the network, and the cells with a run cost at most the plan's
// recomputations.
//
// Loses: one run suffices for a whole cell, even if the tensor is evicted several times within it.
#include "lowtide/solve/bounds/stage/stage_model.h"

#include <algorithm>

#include "lowtide/solve/bounds/common/index.h"
#include "lowtide/solve/bounds/window/window.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::bounds {

namespace {

class Maker {
 public:
  Maker(const Problem& problem, std::span<const std::size_t> stages, StageModel& model)
      : graph_(problem.graph),
        stages_(stages),
        model_(model),
        deadlines_(rerun_deadlines(graph_, graph_.order())),
        cell_(graph_.op_count() * stages.size(), -1),
        turn_(graph_.op_count() * stages.size(), -1),
        next_(graph_.tensor_count() * stages.size(), kNever) {
    for (std::size_t stage = 0; stage < stages.size(); ++stage) look_at(problem.budget, stage);
    const auto order = graph_.order();
    for (std::size_t at = order.size(); at-- > 0;) find_cells(order[at]);
    for (std::size_t at = order.size(); at-- > 0;) find_turns(order[at]);
  }

  void connect() {
    model_.nodes = model_.decisions();
    for (std::size_t i = 0; i < model_.turns.size(); ++i)
      model_.joins.push_back({small(model_.cells.size() + i), model_.turns[i].cell});
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
      for (std::size_t stage = 0; stage < stages_.size(); ++stage)
        connect_tensor(TensorId(i), stage);
  }

 private:
  // The first computation after the stage that reads a tensor, or one of these. `kEnd`: live at the
  // end. `kUsed`: in use at the stage in every plan, or irrelevant.
  static constexpr std::int32_t kNever = -1, kUsed = -2;

  std::int32_t& next(TensorId id, std::size_t stage) {
    return next_[id.index() * stages_.size() + stage];
  }
  std::size_t slot(OpId op, std::size_t stage) const { return op.index() * stages_.size() + stage; }
  bool can_run_after(OpId op, std::size_t stage) const {
    return op.valid() && graph_.recomputable(op) && deadlines_[op.index()] > stages_[stage];
  }

  void look_at(Bytes budget, std::size_t stage) {
    const std::size_t position = stages_[stage];
    const std::vector<std::uint8_t> in_use = in_use_at(graph_, graph_.order()[position]);
    Bytes room = budget - graph_.resident() - graph_.least_workspace(graph_.order()[position]);
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
      const TensorId id(i);
      const OpId producer = graph_.producer(id);
      if (in_use[i] != 0) room -= graph_.bytes(id);
      if (in_use[i] != 0 || graph_.bytes(id) == Bytes(0) ||
          (producer.valid() && graph_.position(producer) > position)) {
        next(id, stage) = kUsed;
        continue;
      }
      std::size_t first = graph_.is_output(id) ? graph_.op_count() : graph_.op_count() + 1;
      for (const OpId reader : graph_.consumers(id))
        if (graph_.position(reader) > position) first = std::min(first, graph_.position(reader));
      if (first > graph_.op_count()) continue;
      next(id, stage) = small(first);
      if (can_run_after(producer, stage)) continue;
      room -= graph_.bytes(id);
      next(id, stage) = kUsed;
    }
    model_.room.push_back(room.count());
  }

  // The position before which the op has run if it takes a turn at the stage; 0: it need not.
  std::size_t deadline(OpId op, std::size_t stage) {
    std::size_t past = 0;
    for (const TensorId id : graph_.outputs(op)) {
      const std::int32_t use = next(id, stage);
      if (use >= 0) past = std::max(past, index(use));
      if (use != kNever) continue;
      for (const OpId reader : graph_.consumers(id))
        if (const std::int32_t cell = cell_[slot(reader, stage)]; cell >= 0)
          past = std::max(past, model_.cells[index(cell)].past);
    }
    return std::min(past, deadlines_[op.index()]);
  }

  // Readers come first.
  void find_cells(OpId op) {
    std::int32_t last = -1;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      if (graph_.position(op) >= stages_[stage] || !can_run_after(op, stage)) continue;
      const std::size_t past = deadline(op, stage);
      if (past == 0) continue;
      if (last < 0 || model_.cells[index(last)].past <= stages_[stage]) {
        last = small(model_.cells.size());
        model_.cells.push_back({op, 0});
      }
      model_.cells[index(last)].past = std::max(model_.cells[index(last)].past, past);
      cell_[slot(op, stage)] = last;
    }
  }

  void find_turns(OpId op) {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      const std::int32_t cell = cell_[slot(op, stage)];
      if (cell < 0) continue;
      const auto inputs = graph_.inputs(op);
      if (std::none_of(inputs.begin(), inputs.end(),
                       [&](TensorId id) { return next(id, stage) == kNever; }))
        continue;
      turn_[slot(op, stage)] = small(model_.turns.size());
      model_.turns.push_back({cell});
    }
  }

  std::int32_t node(OpId op, std::size_t stage) const {
    if (!op.valid()) return -1;
    const std::int32_t turn = turn_[slot(op, stage)];
    return turn < 0 ? cell_[slot(op, stage)] : small(model_.cells.size()) + turn;
  }

  void connect_tensor(TensorId id, std::size_t stage) {
    const std::int32_t use = next(id, stage);
    if (use == kUsed) return;
    const OpId producer = graph_.producer(id);
    const std::int64_t bytes = graph_.bytes(id).count();
    const std::int32_t maker = node(producer, stage);
    if (use >= 0) {
      model_.wants.push_back({maker, small(stage), bytes});
      return;
    }
    std::int32_t reader = -1;
    bool several = false;
    for (const OpId op : graph_.consumers(id)) {
      const std::int32_t other = node(op, stage);
      if (other < 0) continue;
      if (reader >= 0 && !several) {
        const std::int32_t all = small(model_.nodes++);
        model_.joins.push_back({reader, all});
        reader = all;
        several = true;
      }
      if (several)
        model_.joins.push_back({other, reader});
      else
        reader = other;
    }
    if (reader >= 0) model_.holds.push_back({reader, maker, small(stage), bytes});
  }

  const Graph& graph_;
  std::span<const std::size_t> stages_;
  StageModel& model_;
  std::vector<std::size_t> deadlines_;
  std::vector<std::int32_t> cell_, turn_;  // by op and stage; -1: none
  std::vector<std::int32_t> next_;         // by tensor and stage
};

}  // namespace

StageModel::StageModel(const Problem& problem, std::span<const std::size_t> stages) {
  Maker(problem, stages, *this).connect();
}

}  // namespace lowtide::solve::bounds

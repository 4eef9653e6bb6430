// Distributes the work among the relaxations. Private to the solver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lowtide/solve/bounds/cut/cut_branch.h"
#include "lowtide/solve/bounds/cut/cut_search.h"
#include "lowtide/solve/bounds/gap/gap_cover.h"
#include "lowtide/solve/bounds/stage/stage_branch.h"
#include "lowtide/solve/bounds/window/window_bound.h"
#include "lowtide/solve/bounds/window/window_branch.h"
#include "lowtide/solve/bounds/window/window_growth.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::solve::bounds {

struct ProverSettings {
  bool gaps, cuts, branching, windows, window_branching, stages;
  std::int64_t nodes;  // of branching, at each cut point
};

class Prover {
 public:
  Prover(const Problem& problem, Context& context, const ProverSettings& settings);
  // Runs until nothing more can be proven or the context is done.
  void run();

 private:
  // A cut point with its best cut.
  struct Cut {
    OpId op;
    CutFound found;
    LinkShares shares = {};
    std::int64_t nodes = 0;  // the next grant of nodes
    bool exhausted = false;
    std::unique_ptr<CutSearch> search;
    std::unique_ptr<CutBranch> branch;
  };

  std::vector<OpId> moments() const;  // the cut points, in the order in which they are tried
  void cut(OpId op);
  void cover(std::int64_t steps);
  void branch_at(Cut& cut);
  bool windows();
  bool begin_growth();  // for windows
  bool chosen_windows();
  bool branch_windows();
  bool spread_windows();
  void claim_windows(Ticks extra, bool infeasible);
  bool stages(std::int64_t work);
  // Of the given order, ascending.
  std::vector<std::size_t> critical_positions(std::size_t most) const;
  void offer(OpId op, const CutSearch& search);
  void claim_infeasible(CutSearch& search);
  void claim(Ticks extra);
  CutFound maximise(CutSearch& search, const CutAim& aim, LinkShares& shares);

  Ticks base() const { return problem_.graph.total_time(); }
  Ticks proven() const { return context_.bound().duration - base(); }
  // The duration of the best plan: bounds above it are not needed.
  Ticks enough() const {
    return context_.has_plan() ? context_.best_cost().duration - base() : Ticks::max();
  }

  const Problem& problem_;
  Context& context_;
  ProverSettings settings_;
  CutScale scale_;
  std::vector<Bytes> profile_;
  std::size_t size_;  // ops, tensors and links of the graph
  std::vector<Cut> cuts_;
  std::optional<GapCover> cover_;
  std::optional<WindowGrowth> growth_;
  std::optional<WindowBranch> window_branch_;
  std::int64_t chosen_work_ = 0, spread_work_ = 0;  // of growth_ and window_branch_; of windows_
  bool chosen_left_ = true, spread_left_ = true;    // whether they may still raise the bound
  std::optional<WindowBound> windows_;
  std::size_t window_sizes_ = 0;  // how many numbers of cut points have been tried
  std::optional<StageBranch> stages_;
  bool staged_well_ = false;     // whether its last turn has raised the bound
  std::int64_t multiplier_ = 0;  // of the best cut so far
  LinkShares shares_;            // of the best cut so far
};

}  // namespace lowtide::solve::bounds

// Problem: find options of a block with the least effort.
//
// Idea: compute everything once and save all tensors that the backward half reads. Or save nothing:
// every op that can be recomputed from outside tensors is recomputed right before its first reader.
//
// Loses: any option between the two.
#include "lowtide/solve/hierarchy/block/all_or_nothing.h"

namespace lowtide::solve::hierarchy {

namespace {

std::int64_t work_of(const BlockTask& task) {
  return static_cast<std::int64_t>(task.block.op_count());
}

class SaveAll final : public BlockSolver {
 public:
  std::string_view name() const override { return "save_all"; }
  std::string_view summary() const override { return "compute each op once and save all tensors"; }
  Support supports(const BlockTask&) const override { return {}; }
  std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const override {
    if (limits.spend(work_of(task))) return {};
    return {task.block.save_all()};
  }
};

class RecomputeAll final : public BlockSolver {
 public:
  std::string_view name() const override { return "recompute_all"; }
  std::string_view summary() const override {
    return "save nothing; recompute from the tensors that cross the border";
  }
  Support supports(const BlockTask& task) const override {
    return task.block.has_backward() ? Support{} : Support::no("the block has no backward half");
  }
  std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const override {
    if (limits.spend(2 * work_of(task))) return {};
    std::vector<BlockOption> options;
    if (auto option = task.block.recompute_all()) options.push_back(std::move(*option));
    return options;
  }
};

}  // namespace

std::unique_ptr<BlockSolver> make_save_all() { return std::make_unique<SaveAll>(); }
std::unique_ptr<BlockSolver> make_recompute_all() { return std::make_unique<RecomputeAll>(); }

}  // namespace lowtide::solve::hierarchy

// Problem: in a chain, choose the borders between stages to hold, and the option of each stage,
// such that the overhead is least.
//
// Idea: a stage either runs with the tensors that its backward needs held, or is passed, and runs
// again when all later stages are done. A table over all ranges of stages and all amounts of memory
// (rotor_table.cpp) serves all budgets. Sizes are rounded up to slots. So each budget is tried with
// more slots while the resulting plan keeps it, and with fewer if it does not, since the figures of
// a stage ignore effects of other stages.
//
// Source: O. Beaumont, L. Eyraud-Dubois, J. Hermann, A. Joly, A. Shilova, "Optimal checkpointing
// for heterogeneous chains: how to train deep neural networks with limited memory", arXiv
// 1911.13214; several options for a stage: X. Zhao et al., "Rockmate", ICML 2023.
//
// Not in these papers: given borders, tables of short ranges, and other orders of a stage's
// backward (docs/why/block-solvers.md).
//
// Invariant: the backward of each stage runs once, from the last stage to the first. Not in the
// table are plans with another order, plans that hold a part of a stage's tensors that no option
// holds, and plans that free held tensors and recompute them.
//
// Loses: if the forward nodes are no chain, such as between the two arms of a U-Net.
#include "lowtide/solve/hierarchy/block/rotor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lowtide/solve/hierarchy/block/chain_view.h"
#include "lowtide/solve/hierarchy/block/level_view.h"
#include "lowtide/solve/hierarchy/block/rotor_table.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::hierarchy {

namespace {

// Beyond this number neighbouring stages are joined. Each stage that holds tensors takes at least
// one slot, so many stages with few slots are of little use.
constexpr std::size_t kMostStages = 1000;
constexpr std::size_t kSlotsOfBorder = 16;     // on average, if hundreds are held
constexpr std::size_t kMostSlots = 1'000'000;  // of all stages, so that ranges of a dozen fit
constexpr std::size_t kFewestSlots = 100;      // for long chains, to allow longer ranges
constexpr std::size_t kMostNodesOfChain = 20'000;

class RotorRun {
 public:
  RotorRun(const BlockTask& task, const LevelView& view, const ChainView& chain, std::size_t slots,
           Limits& limits)
      : task_(task), view_(view), chain_(chain), slots_(slots), limits_(limits) {
    for (const BlockBudget& budget : task.budgets) most_ = std::max(most_, budget.peak);
    // More memory than everything needs does not help.
    most_ = std::min(most_, task.block.save_all().peak());
    if (!task.block.has_backward())
      constant_ = task.block.graph().resident() + task.block.graph().input_bytes();
  }

  // Near the smallest budgets few borders fit, and the ranges between them are long.
  std::vector<BlockOption> run() {
    std::vector<BlockBudget> left(task_.budgets.begin(), task_.budgets.end());
    for (std::size_t slots = slots_for_all(); !left.empty() && !limits_.stopped(); slots /= 2) {
      make_table(slots);
      std::erase_if(left,
                    [&](const BlockBudget& budget) { return !limits_.stopped() && solve(budget); });
      if (table_->is_whole() || slots / 2 < kFewestSlots) break;
    }
    return std::move(found_);
  }

 private:
  // With as many slots for each border that may be held, their sizes must remain distinct.
  std::size_t slots_for_all() const {
    Bytes borders;
    for (const Stage& stage : chain_.stages) borders += stage.border.again;
    const auto stages = static_cast<std::int64_t>(chain_.stages.size());
    const std::int64_t mean = std::max<std::int64_t>(1, borders.count() / stages);
    const auto held = static_cast<std::size_t>((most_ - constant_).count() / mean);
    return std::max(slots_, std::min(kSlotsOfBorder * held, kMostSlots / chain_.stages.size()));
  }

  void make_table(std::size_t slots) {
    // Slots beyond the budgets, to compensate for rounding up.
    const std::int64_t room = std::max<std::int64_t>(1, (most_ - constant_).count());
    const std::int64_t more = std::min(room / 8, INT64_MAX - room);
    table_.reset();
    table_.emplace(chain_, task_.block.has_backward(), Bytes(room + more), slots, limits_);
  }

  // Whether any plan was found.
  bool solve(const BlockBudget& budget) {
    const std::size_t peak = table_->slots_of(std::min(budget.peak, most_) - constant_);
    const std::size_t held = table_->slots_of(std::min(budget.saved, most_));
    const auto all = static_cast<std::ptrdiff_t>(table_->slots());
    const auto low = -static_cast<std::ptrdiff_t>(peak);
    const auto high = all - static_cast<std::ptrdiff_t>(std::min(peak, held));
    std::optional<BlockOption> best;
    // Whether the plan with so many more slots keeps the budget (or there is none).
    const auto serves = [&](std::ptrdiff_t more) {
      const auto moved = [&](std::size_t slots) {
        return static_cast<std::size_t>(
            std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(slots) + more, 0, all));
      };
      auto option = found_with(moved(peak), moved(held));
      if (!option) return true;
      const bool kept = option->keeps(budget);
      if (kept && (!best || option->time() <= best->time())) best = std::move(option);
      return kept;
    };
    // The largest useful number of slots: by doubling, then by bisection.
    std::ptrdiff_t good = 0, bad = 0;
    const bool up = serves(0);
    for (std::ptrdiff_t step = 1; !limits_.stopped(); step *= 2) {
      const std::ptrdiff_t at = std::clamp(up ? step : -step, low, high);
      if (at == (up ? good : bad)) break;
      const bool is_good = serves(at);
      (is_good ? good : bad) = at;
      if (is_good != up) break;
    }
    while (bad > good + 1 && !limits_.stopped()) {
      const std::ptrdiff_t middle = good + (bad - good) / 2;
      (serves(middle) ? good : bad) = middle;
    }
    if (!best) return false;
    for (const BlockOption& other : found_)
      if (other.forward == best->forward && other.backward == best->backward) return true;
    best->found_by = "rotor";
    found_.push_back(std::move(*best));
    return true;
  }

  std::optional<BlockOption> found_with(std::size_t slots, std::size_t held) {
    const auto steps = table_->steps(slots, held, view_.rest(), limits_);
    if (!steps) return std::nullopt;
    const auto sequence = task_.level.sequence(*steps);
    if (limits_.spend_all(static_cast<std::int64_t>(sequence.size()))) return std::nullopt;
    std::optional<Graph> none;
    const Problem problem = task_.block.problem({Bytes::max(), Bytes::max()}, none);
    return task_.block.price(without_unread(problem, sequence));
  }

  const BlockTask& task_;
  const LevelView& view_;
  const ChainView& chain_;
  std::size_t slots_;
  Limits& limits_;
  Bytes most_, constant_;
  std::optional<RotorTable> table_;
  std::vector<BlockOption> found_;
};

class Rotor final : public BlockSolver {
 public:
  explicit Rotor(std::size_t slots) : slots_(slots) {}

  std::string_view name() const override { return "rotor"; }
  std::string_view summary() const override {
    return "dynamic program over a chain of stages with several options each (Beaumont et al.)";
  }
  bool is_slow() const override { return true; }
  Support supports(const BlockTask& task) const override {
    if (task.level.nodes.size() > kMostNodesOfChain)
      return Support::no("more than " + std::to_string(kMostNodesOfChain) + " nodes are too many");
    if (task.level.scheduled() > kMostScheduled)
      return Support::no("the options of the blocks inside are too long to look at each");
    const LevelView view(task.block, task.level);
    const ChainView chain(task.block, task.level, view, kMostStages, task.order, nullptr);
    return chain.reason.empty() ? Support{} : Support::no(chain.reason);
  }

  std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const override {
    const auto work = static_cast<std::int64_t>(task.block.op_count() + task.level.nodes.size());
    if (limits.spend_all(work)) return {};
    const LevelView view(task.block, task.level);
    const ChainView chain(task.block, task.level, view, kMostStages, task.order, &limits);
    if (!chain.reason.empty()) return {};
    return RotorRun(task, view, chain, slots_, limits).run();
  }

 private:
  std::size_t slots_;
};

}  // namespace

std::unique_ptr<BlockSolver> make_rotor(std::size_t slots) {
  return std::make_unique<Rotor>(slots);
}

}  // namespace lowtide::solve::hierarchy

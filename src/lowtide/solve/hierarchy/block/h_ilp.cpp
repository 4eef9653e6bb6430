// Problem: choose options of the inner blocks, and recomputations, for each budget.
//
// Idea: the integer program of appendix B (h_program.cpp), one for each budget, all in one worker
// process. The largest budget comes first: if its optimum keeps a smaller budget, it is optimal
// there too, and if it is infeasible, so are all smaller ones.
//
// Source: J. Gusak et al., "HiRemate: Hierarchical Approach for Efficient Re-materialization of
// Neural Networks", ICML 2025, section 3.2.2 and appendix B.
//
// Invariant: every solution is expanded to a schedule and priced by the block; the figures of the
// program are not used. Each program gets a share of the remaining limits, so one that takes too
// long costs the others little.
//
// Loses: beyond some forty nodes with a hundred options, where HiGHS proves nothing within a
// minute.
#include "lowtide/solve/hierarchy/block/h_ilp.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/engines/mip.h"
#include "lowtide/solve/hierarchy/block/h_program.h"
#include "lowtide/solve/hierarchy/block/level_view.h"
#include "lowtide/solve/interface/engine_run.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::hierarchy {

namespace {

constexpr std::size_t kMostNodes = 250;
constexpr std::size_t kMostRows = 100'000;
constexpr double kLeastShare = 0.1;  // of the remaining limits, for each program

class HIlpRun {
 public:
  HIlpRun(const BlockTask& task, Limits& limits)
      : task_(task), limits_(limits), view_(task.block, task.level) {
    for (const BlockOption& option : task.known) {
      std::vector<OpId> sequence = option.forward;
      if (task.block.has_backward()) {
        sequence.push_back(task.block.rest());
        sequence.insert(sequence.end(), option.backward.begin(), option.backward.end());
      }
      if (auto steps = view_.steps_of(sequence); !steps.empty())
        starts_.emplace_back(&option, std::move(steps));
      // A proof for other options of the inner blocks is no longer valid.
      if (option.quickest_within && task.level.children.empty()) proven_.push_back(&option);
    }
  }

  std::vector<BlockOption> run(engines::EngineState engine) {
    engines::MipSession session(std::move(engine));
    std::vector<BlockBudget> budgets(task_.budgets.begin(), task_.budgets.end());
    std::ranges::sort(budgets, std::greater());
    for (std::size_t i = 0; i < budgets.size() && !limits_.stopped(); ++i) {
      if (is_settled(budgets[i])) continue;
      const double share = std::max(kLeastShare, 1.0 / static_cast<double>(budgets.size() - i));
      Limits part(limits_.remaining(share));
      solve(budgets[i], session, part);
      limits_.spend_all(part.work());
    }
    return {std::make_move_iterator(found_.begin()), std::make_move_iterator(found_.end())};
  }

 private:
  bool is_settled(const BlockBudget& budget) const {
    return std::ranges::any_of(impossible_,
                               [&](const BlockBudget& larger) { return larger.covers(budget); }) ||
           std::ranges::any_of(proven_, [&](const BlockOption* option) {
             return option->quickest_within->covers(budget) && option->keeps(budget);
           });
  }

  void solve(const BlockBudget& budget, engines::MipSession& session, Limits& limits) {
    const BlockProblem& block = task_.block;
    EngineRun engine_run(limits, task_.seed, task_.threads);
    HProgram::Settings settings;
    settings.peak = budget.peak;
    if (block.has_backward())
      settings.saved = budget.saved;
    else
      settings.peak -= block.graph().resident() + block.graph().input_bytes();
    settings.corrections = !block.has_backward();
    HProgram program(view_, settings, limits);
    if (limits.stopped() || !engine_run.affords(program.model().entry_count())) return;
    const BlockOption* best = nullptr;
    for (const auto& [option, steps] : starts_)
      if (option->keeps(budget) && (best == nullptr || option->time() < best->time()) &&
          program.start(steps))
        best = option;
    engines::EngineLimits engine_limits = engine_run.limits();
    engine_limits.threads = task_.threads;
    const engines::MipAnswer answer = session.solve(program.model(), engine_limits);
    engine_run.charge(answer.end);
    if (answer.end.status == engines::EngineStatus::infeasible) impossible_.push_back(budget);
    if (answer.values.empty()) return;
    auto steps = program.steps(answer.values);
    std::optional<Graph> none;
    const Problem problem = block.problem({Bytes::max(), Bytes::max()}, none);
    BlockOption option;
    try {
      option = block.price(without_unread(problem, task_.level.sequence(steps)));
    } catch (const InputError&) {
      return;  // an invalid answer
    }
    const bool optimal = answer.end.status == engines::EngineStatus::optimal;
    option.found_by = optimal ? "h_ilp" : "h_ilp, timed out";
    if (optimal) option.quickest_within = budget;
    found_.push_back(std::move(option));
    if (optimal) proven_.push_back(&found_.back());
    starts_.emplace_back(&found_.back(), std::move(steps));
  }

  const BlockTask& task_;
  Limits& limits_;
  LevelView view_;
  std::vector<std::pair<const BlockOption*, std::vector<LevelStep>>> starts_;
  std::deque<BlockOption> found_;
  std::vector<const BlockOption*> proven_;  // options proven to be the fastest within some budget
  std::vector<BlockBudget> impossible_;
};

class HIlp final : public BlockSolver {
 public:
  std::string_view name() const override { return "h_ilp"; }
  std::string_view summary() const override {
    return "HiRemate's integer program over phases and options, solved by HiGHS";
  }
  std::string missing(const std::function<bool()>& stop) const override {
    return engines::find_engine(engines::EngineKind::highs, {}, stop).missing;
  }
  bool is_slow() const override { return true; }
  bool goes_on() const override { return true; }
  bool is_kept() const override { return true; }
  std::string version() const override {
    return engines::find_engine(engines::EngineKind::highs).version;
  }
  Support supports(const BlockTask& task) const override {
    const std::size_t nodes = task.level.nodes.size();
    if (nodes > kMostNodes)
      return Support::no("its program grows with the square of the nodes, and more than " +
                         std::to_string(kMostNodes) + " are too many");
    if (task.level.scheduled() > kMostScheduled)
      return Support::no("the options of the blocks inside are too long to look at each");
    const std::size_t rows = HProgram::most_rows(LevelView(task.block, task.level));
    if (rows > kMostRows)
      return Support::no("its program would have some " + std::to_string(rows) +
                         " rows, and more than " + std::to_string(kMostRows) + " are too many");
    return {};
  }

  std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const override {
    EngineRun engine_run(limits, task.seed, task.threads);
    engines::EngineState engine = engine_run.find(engines::EngineKind::highs);
    const auto work = static_cast<std::int64_t>(task.block.op_count() + task.level.nodes.size());
    if (!engine.missing.empty() || limits.spend_all(work)) return {};
    return HIlpRun(task, limits).run(std::move(engine));
  }
};

}  // namespace

std::unique_ptr<BlockSolver> make_h_ilp() { return std::make_unique<HIlp>(); }

}  // namespace lowtide::solve::hierarchy

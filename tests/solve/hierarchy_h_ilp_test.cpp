// HiRemate's program against Checkmate's where there are no blocks, and against every sequence of
// steps where there are.

#include <doctest/doctest.h>

#include "lowtide/engines/find.h"
#include "lowtide/graph/generate.h"
#include "lowtide/solve/exact/checkmate/checkmate.h"
#include "lowtide/solve/hierarchy/block/h_ilp.h"
#include "lowtide/solve/hierarchy/block/level_view.h"

#include "solve/fake_engine.h"
#include "solve/level_case.h"
#include "solve/run_solver.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/variable.h"

namespace lowtide {
namespace {

using solve::hierarchy::BlockBudget;
using solve::hierarchy::BlockOption;

#define NEED_HIGHS()                                                        \
  if (const auto engine = engines::find_engine(engines::EngineKind::highs); \
      !engine.missing.empty()) {                                            \
    MESSAGE("left out: it needs ", engine.missing);                         \
    return;                                                                 \
  }

TEST_CASE("h_ilp: without blocks its optimum is Checkmate's") {
  NEED_HIGHS()
  const auto checkmate = solve::exact::checkmate::make_checkmate();
  const auto h_ilp = solve::hierarchy::make_h_ilp();
  int told = 0;
  for (int i = 0; i < 200 && told < (kSanitized ? 3 : 16); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random, RandomGraphSettings::plain(6 + random.below(4)));
    LevelCase level(graph, no_partition(graph));
    // A partition lists its parts in an order of its own.
    std::ranges::sort(level.level.nodes, {}, [&](const auto& it) { return graph.position(it.op); });
    const auto own = level.block->save_all().peak();
    const BlockBudget budget{Bytes(random.between(own.count() / 2, own.count() - 1)), Bytes::max()};
    const Problem problem{.graph = graph, .budget = budget.peak, .order = Order::given};
    const Outcome outcome = run_solver(*checkmate, problem);
    const auto found = level.solve(*h_ilp, {budget});
    // Where the given order does, or nothing can, it makes no program.
    std::optional<Ticks> best;
    if (outcome.plan) best = outcome.cost.duration;
    if (outcome.model && !outcome.model->infeasible) best = outcome.model->bound;
    REQUIRE(found.empty() == !best.has_value());
    if (found.empty()) continue;
    ++told;
    REQUIRE(found.size() == 1);
    CHECK(found[0].found_by == "h_ilp");
    CHECK(found[0].time() == *best);
    CHECK(found[0].peak() <= budget.peak);
  }
  CHECK(told > 0);
}

TEST_CASE("h_ilp: the least time of all sequences of steps over blocks with options") {
  NEED_HIGHS()
  const auto h_ilp = solve::hierarchy::make_h_ilp();
  check_least_times(*h_ilp);
}

// Its ops are nodes, and so every sequence of ops is one of steps.
TEST_CASE("h_ilp: saved bytes of a block count, its outputs do not") {
  NEED_HIGHS()
  const auto h_ilp = solve::hierarchy::make_h_ilp();
  int told = 0, kept = 0;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    CAPTURE(seed);
    const Graph graph = generate("chain", 18, seed);
    const LevelCase level(graph, partition_by("chain", graph, "blocks=3"), false);
    REQUIRE(level.block->has_backward());
    const BlockOption save = level.block->save_all();
    std::vector<BlockBudget> budgets;
    for (const double peak : {1.0, 0.8})
      for (const double saved : {1.0, 0.5, 0.0})
        budgets.push_back({share_of(save.peak(), peak), share_of(save.saved, saved)});
    const auto found = level.solve(*h_ilp, budgets);
    for (const BlockBudget& budget : budgets) {
      CAPTURE(budget.peak.count());
      CAPTURE(budget.saved.count());
      const auto truth = least_time(level, budget, 2);
      std::optional<Ticks> best;
      for (const BlockOption& option : found)
        if (option.peak() <= budget.peak && option.saved <= budget.saved)
          best = std::min(best.value_or(Ticks::max()), option.time());
      CHECK(best.has_value() == truth.has_value());
      if (truth && best) CHECK(*best == *truth);
      told += truth.has_value();
      kept += best.has_value();
    }
    // What is proven is not asked again.
    for (const BlockOption& option : level.solve(*h_ilp, budgets, found)) {
      CAPTURE(option.found_by);
      CHECK(std::ranges::none_of(found, [&](const BlockOption& known) {
        return known.quickest_within == option.quickest_within;
      }));
    }
  }
  CHECK(told > 5);
}

TEST_CASE("h_ilp: a time limit, and a start from known options") {
  NEED_HIGHS()
  const Graph graph = generate("transformer", 60, 1);
  LevelCase level(graph, no_partition(graph));
  const BlockBudget budget{share_of(level.block->save_all().peak(), 0.8), Bytes::max()};
  const solve::hierarchy::LevelView view(*level.block, level.level);
  const auto sequence = level.block->save_all().forward;
  LimitSettings none;
  none.work = 10;
  CHECK(level.solve(*solve::hierarchy::make_h_ilp(), {budget}, {}, none).empty());
  LimitSettings half;
  half.seconds = 0.5;
  for (const BlockOption& option :
       level.solve(*solve::hierarchy::make_h_ilp(), {budget}, {level.block->save_all()}, half))
    CHECK(option.found_by.starts_with("h_ilp"));
}

TEST_CASE("h_ilp: without HiGHS, with wrong results of it, and for a level that is too large") {
  const Graph graph = generate("chain", 30, 1);
  const LevelCase level(graph, partition_by("chain", graph, "blocks=3"));
  const BlockBudget budget{share_of(level.block->save_all().peak(), 0.9), Bytes::max()};
  const auto h_ilp = solve::hierarchy::make_h_ilp();
  {
    const Variable nowhere("LOWTIDE_HIGHS", "/nowhere");
    CHECK(h_ilp->missing().starts_with("HiGHS: LOWTIDE_HIGHS"));
    CHECK(level.solve(*h_ilp, {budget}).empty());
  }
  for (const char* how : {"crash", "nonsense", "quit", "infeasible", "liar"}) {
    CAPTURE(how);
    const FakeEngine fake("LOWTIDE_HIGHS", how);
    level.solve(*h_ilp, {budget});  // priced, whatever it says
  }
  const Graph large = generate("chain", 600, 1);
  const LevelCase whole(large, no_partition(large));
  const solve::hierarchy::BlockTask task{
      .block = *whole.block, .level = whole.level, .budgets = {}, .known = {}};
  CHECK(h_ilp->supports(task).reason ==
        "its program grows with the square of the nodes, and more than 250 are too many");
}

TEST_CASE("levels: the steps and options of a sequence") {
  const Graph graph = generate("chain", 30, 1);
  const LevelCase level(graph, partition_by("chain", graph, "blocks=3"));
  const solve::hierarchy::LevelView view(*level.block, level.level);
  for (const std::size_t option : {0u, 1u}) {
    std::vector<solve::hierarchy::LevelStep> steps;
    for (std::size_t k = 0; k < level.level.nodes.size(); ++k)
      steps.push_back({k, level.level.nodes[k].op.valid() ? 0 : option});
    const auto found = view.steps_of(level.level.sequence(steps));
    CHECK(level.level.sequence(found) == level.level.sequence(steps));
    for (const auto& [node, run] : view.runs_of(found)) {
      const auto& runs = view.runs(node);
      REQUIRE(run < runs.size());
      if (view.partner(node) != solve::hierarchy::kNoNode) CHECK(runs[run].passes == (option == 1));
    }
  }
}

}  // namespace
}  // namespace lowtide

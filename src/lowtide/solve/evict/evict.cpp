// Problem: run the ops in a fixed order within a budget with little recomputation.
//
// Idea: process the order. Before an op runs, recompute its missing inputs (recursively). Whenever
// the budget would be exceeded, evict the live tensor with the lowest score; tensors without a
// further use go first. This is dynamic tensor rematerialization (Kirisame et al., ICLR 2021) with
// the future known: instead of the staleness (the time since the last use), scores use the distance
// to the next use. The paper's other heuristics have their names, and so has MSPS of Peng et al.
// (Capuchin, ASPLOS 2020).
//
// The score of a tensor only rises while it waits (its next use comes nearer), so an old key in the
// heap is a lower bound: the top is scored again, and evicted if it still has the lowest score. At
// most a few tensors are scored again for each eviction, so the whole run is near-linear.
//
// Invariant: `live` contains all tensors that are live by the frees of plan_from_sequence. So a
// plan that was built without exceeding the budget keeps it.
//
// Loses: it never looks beyond the next use. Two tensors that are each recomputed from a neighbour
// of the other may be evicted one after the other; then both must be recomputed without the other.
// An early eviction may make a later one impossible although a plan exists.
#include "lowtide/solve/evict/evict.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/evict/evict_run.h"
#include "lowtide/solve/interface/starts.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::evict {

namespace {

// The most often best score comes first, so that a run that is stopped early has used it.
constexpr std::array<std::pair<std::string_view, EvictScore>, 6> kScores = {{
    {"msps", EvictScore::msps},
    {"dtr_eq", EvictScore::dtr_eq},
    {"dtr", EvictScore::dtr},
    {"local", EvictScore::local},
    {"lru", EvictScore::lru},
    {"size", EvictScore::size},
}};

const std::array<OptionSpec, 2>& specs() {
  static const std::array<OptionSpec, 2> table = {{
      {.name = "score",
       .usage = "eviction score: one of those published, or all of them in turn",
       .default_choice = "all",
       .choices = {"all", "msps", "dtr_eq", "dtr", "local", "lru", "size"}},
      {.name = "growth",
       .usage = "give up a score when its plan has more computations than this times the ops of "
                "the graph",
       .default_number = 8,
       .low = 1,
       .high = 1000,
       .whole = true},
  }};
  return table;
}

class Evict final : public Solver {
 public:
  std::string_view name() const override { return "evict"; }
  std::string_view summary() const override {
    return "evicts tensors by DTR's scores, offline, with all later uses known; fast at any size; "
           "moderate budgets";
  }
  Traits traits() const override { return {Trait::constructive}; }
  std::span<const OptionSpec> options() const override { return specs(); }
  Support supports(const Problem& problem) const override { return least_time_only(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    context.offer_sequence(problem.graph.order());
    const auto orders = orders_to_try(context);
    const std::string_view chosen = context.options().choice("score");
    for (const auto& [word, score] : kScores)
      for (const auto& order : orders) {
        if (context.done()) return context.finish();
        if (chosen == "all" || chosen == word) try_score(problem, context, order, score);
      }
    return context.finish();
  }

 private:
  // A run that exceeds the budget is repeated with a target that is lower by the excess.
  static void try_score(const Problem& problem, Context& context, const std::vector<OpId>& order,
                        EvictScore score) {
    constexpr int kTries = 4;
    Bytes target = problem.budget;
    for (const bool keep_outputs : {true, false}) {
      target = problem.budget;
      for (int attempt = 0; attempt < kTries && !context.done(); ++attempt) {
        EvictRun run(problem.graph, order, {target, score, keep_outputs}, context);
        const auto sequence = run.build();
        if (!sequence) break;
#if LOWTIDE_DEBUG_CHECKS
        const Cost cost =
            simulate(problem.graph, plan_from_sequence(problem.graph, *sequence)).cost;
        check(cost.peak <= run.peak() && cost.duration == run.duration(),
              "evict lost count of bytes or time");
#endif
        context.offer_sequence(without_unread(problem, *sequence));
        if (!run.overran()) return;
        const Bytes over = run.peak() - target;
        if (over.count() <= 0 || over >= target) break;
        target -= over;
      }
    }
  }
};

}  // namespace

std::unique_ptr<Solver> make_evict() { return std::make_unique<Evict>(); }

}  // namespace lowtide::solve::evict

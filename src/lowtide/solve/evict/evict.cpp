// Problem: run the ops in a fixed order within a budget, losing little time to recomputation.
//
// Idea: go through the order. Before an op runs, make again what it lacks (and what that lacks);
// whenever the budget would be passed, evict the live tensor that scores lowest. Tensors without a
// further use go first. This is dynamic tensor rematerialization (Kirisame et al., ICLR 2021) with
// the future known: where the paper divides by staleness, the time since the last use, we divide by
// the distance to the next one. Its other heuristics are there under their names, and Peng et al.'s
// MSPS (Capuchin, ASPLOS 2020).
//
// Scores grow while their tensors wait (the next use comes nearer), so an old key in the heap is a
// lower limit: the top is re-scored and taken if it still is the lowest. A few re-scorings at most
// are done for one eviction, which keeps the whole near-linear.
//
// Invariant: `live` is what the frees of plan_from_sequence will leave live, or more; so a plan
// built without overrun keeps the budget.
//
// Loses: it never looks past the next use. Two tensors, each recomputable from the other's cheap
// neighbour, are evicted one after the other, and then both must be made again over the other's
// absence; and an early greedy eviction may make a later one impossible where a plan exists.
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

// The one that most often is best comes first, so that a run that is cut short has it.
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
  // A run that passes the budget is tried again with a target lower by what it was passed by.
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

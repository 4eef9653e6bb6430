// Problem: run the ops in a fixed order within a budget with little recomputation.
//
// Idea: process the order. When an op would exceed the budget, select, among the live tensors that
// it does not need, the one whose recomputation frees most bytes now (or most bytes per tick). Free
// it after its last use so far, and insert a recomputation of its op right before its next use; all
// later uses read the recomputed tensor. Repeat until the op fits, or until nothing frees bytes.
// Recomputations are computations like others: the sweep reaches them, and their outputs may be
// evicted again, as often as `repeats` allows.
//
// Source: R. Kumar, M. Purohit, Z. Svitkina, E. Vee, J. Wang, "Efficient Rematerialization for Deep
// Networks", NeurIPS 2019, section 4, GreedyRemat, which describes HloRematerialization of XLA.
// That algorithm is `choice=bytes repeats=1 block=1`, the first sweep. XLA itself selects by bytes
// per tick, and today recomputes blocks of ops together, of doubling size as long as nothing is
// found; hence the other sweeps. The paper leaves some details open. Here a candidate is a tensor
// and not an op, so a small output that is needed soon does not hold a large output of the same op;
// outputs that are needed only after the recomputation are freed too. Inputs of the recomputed op
// must be live until then. A live input is held longer. A freed input is recomputed with the op, as
// long as the block allows; otherwise its bytes are charged and it is held from its free on, unless
// that would have exceeded the budget in between. Of equal candidates the one with the latest next
// use goes first.
//
// Near-linear: candidates are in a heap under an upper bound of the bytes that they free, are
// evaluated again at the top, and return only when they are used, made, or become cheaper to
// recompute. The past is a profile with suffix sums.
//
// Invariant: `live` is the set of tensors that the frees of plan_from_sequence leave live at this
// step. Earlier steps never need more than the larger of the budget and their own need when they
// were processed.
//
// Loses: if long chains must be recomputed. In a chain of equal tensors that a backward pass reads,
// every second tensor can be freed, but no more: a tensor whose own input is freed frees nothing,
// because that input would have to be live again. So memory falls to about a half, whereas segments
// need a square root.
#include "lowtide/solve/greedy/greedy.h"

#include <array>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/greedy/greedy_pass.h"
#include "lowtide/solve/interface/starts.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::greedy {

namespace {

constexpr std::array<std::pair<std::string_view, GreedyChoice>, 2> kChoices = {
    {{"bytes", GreedyChoice::bytes}, {"bytes_per_tick", GreedyChoice::bytes_per_tick}}};

const std::array<OptionSpec, 3>& specs() {
  static const std::array<OptionSpec, 3> table = {{
      {.name = "choice",
       .usage = "tensor to recompute next: the largest (Kumar et al.), the one with most bytes per "
                "tick (XLA), or both in turn",
       .default_choice = "both",
       .choices = {"both", "bytes", "bytes_per_tick"}},
      {.name = "repeats",
       .usage = "most recomputations of an op",
       .default_number = 4,
       .low = 1,
       .high = 1000,
       .whole = true},
      {.name = "block",
       .usage = "most ops recomputed together for one tensor; 1, 2, 4, ... are tried",
       .default_number = 8,
       .low = 1,
       .high = 1000,
       .whole = true},
  }};
  return table;
}

class Greedy final : public Solver {
 public:
  std::string_view name() const override { return "greedy"; }
  std::string_view summary() const override {
    return "greedy recomputation, op by op, as in XLA; a baseline for moderate budgets";
  }
  std::span<const OptionSpec> options() const override { return specs(); }
  Support supports(const Problem& problem) const override { return least_time_only(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    const auto number = [&](std::string_view name) { return context.options().number(name); };
    const std::string_view chosen = context.options().choice("choice");
    const auto most = static_cast<std::size_t>(number("block"));
    GreedySettings settings{.limit = problem.budget};
    settings.repeats = static_cast<std::uint32_t>(number("repeats"));
    const auto orders = orders_to_try(context);
    for (const auto& order : orders) context.offer_sequence(order);
    for (std::size_t block = 1; block <= most; block *= 2)
      for (const auto& [word, choice] : kChoices)
        for (const auto& order : orders) {
          if (context.done()) return context.finish();
          if (chosen != "both" && chosen != word) continue;
          settings.choice = choice;
          settings.block = block;
          GreedyPass sweep(problem.graph, order, settings, context.limits());
          const auto sequence = sweep.run();
          if (!sequence) continue;
#if LOWTIDE_DEBUG_CHECKS
          const Plan plan = plan_from_sequence(problem.graph, *sequence);
          check(simulate(problem.graph, plan).cost.peak == sweep.peak(),
                "greedy lost count of bytes");
#endif
          context.offer_sequence(without_unread(problem, *sequence));
        }
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_greedy() { return std::make_unique<Greedy>(); }

}  // namespace lowtide::solve::greedy

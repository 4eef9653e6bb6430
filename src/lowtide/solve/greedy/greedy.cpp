// Problem: run the ops in a fixed order within a budget, losing little time to recomputation.
//
// Idea: go through the order. Whenever an op would pass the budget, look among the tensors that are
// live and not needed by it for the one whose recomputation frees most at this moment, let it go
// after the use before and put a repetition of its op right before its next use; all later uses
// read the repetition. Repeat until the op fits; if nothing is left that frees anything, move on.
// The repetitions are computations like others: the sweep comes to them, and what they make may go
// again, as often as `repeats` says.
//
// Source: R. Kumar, M. Purohit, Z. Svitkina, E. Vee, J. Wang, "Efficient Rematerialization for Deep
// Networks", NeurIPS 2019, section 4, GreedyRemat, which describes HloRematerialization of XLA.
// Their algorithm is `choice=bytes repeats=1 block=1`, the first sweep. XLA itself chooses by time
// for each byte, and today repeats blocks of ops together, doubling them as long as nothing is
// found: hence the other sweeps. What the paper leaves open is settled thus. The candidate is a
// tensor, so that a small output of an op that is needed soon does not hold a large one that is
// not; outputs needed only after the repetition go too. What the op reads must live until the
// repetition: what still lives then is only kept longer; what has gone already is made again with
// it as long as the block allows, and else charged with its bytes and kept from where it went,
// unless that would have passed the budget on the way here. Among equals the one needed last goes
// first.
//
// Near-linear: candidates lie in a heap under an upper limit of what they free, are looked at again
// when they come out on top, and return only when they are used, made or can be made more cheaply;
// the past is a profile with suffix sums.
//
// Invariant: `live` is what the frees of plan_from_sequence leave live at this step, and the steps
// before never need more than the larger of the budget and what they needed when they were done.
//
// Loses: where whole runs of ops must be repeated. In a chain of equal tensors that a backward pass
// reads, each second one can go, but no more: one whose own input is gone frees nothing, because
// that input would have to come back. So memory falls to about a half, where segments need a square
// root.
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

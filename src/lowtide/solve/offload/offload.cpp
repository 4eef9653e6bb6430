// Problem: keep a budget by moving tensors to the host and back, with few stalls.
//
// Idea: use a fixed sequence of computations, the given order or that of a start plan. Go along it,
// and at each position above the budget, choose tensors to offload (gaps.cpp). Then place their
// transfers by the rule of solve/sequence/placement. A budget that is just kept leaves no memory
// for early fetches, so lower targets are tried too.
//
// Source: Belady's rule, for tensors of different sizes; vDNN (M. Rhu et al., MICRO 2016) and
// Capuchin (X. Peng et al., ASPLOS 2020) also choose tensors by the time between uses. There the
// lanes decide which tensors are offloaded; here the placement follows, and the choice keeps the
// budget first.
//
// Invariant: the computations are those of the sequence, so plans are legal in both orders.
//
// Loses: when the link is always busy, since it never recomputes. Its plan is then a start plan for
// solvers that do both.
#include "lowtide/solve/offload/offload.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "lowtide/solve/offload/gaps.h"
#include "lowtide/solve/sequence/placement.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::offload {

namespace {

constexpr std::array<std::pair<std::string_view, Score>, 2> kScores = {
    {{"relief", Score::relief}, {"farthest", Score::farthest}}};
// Targets below the budget, as shares of the excess.
constexpr std::array<double, 4> kSpare = {0, 0.03, 0.1, 0.25};

const std::array<OptionSpec, 1>& specs() {
  static const std::array<OptionSpec, 1> table = {{
      {.name = "score",
       .usage = "tensor to offload next: most relief per transfer time, farthest next use, or both "
                "in turn",
       .default_choice = "all",
       .choices = {"all", "relief", "farthest"}},
  }};
  return table;
}

class Offload final : public Solver {
 public:
  std::string_view name() const override { return "offload"; }
  std::string_view summary() const override {
    return "greedy offload to the host in the given order; needs a link";
  }
  Traits traits() const override { return {Trait::constructive, Trait::transfers}; }
  std::span<const OptionSpec> options() const override { return specs(); }
  Support supports(const Problem& problem) const override {
    if (!problem.machine) return Support::no("it moves tensors over a link, and there is none");
    if (std::string why = too_long(problem); !why.empty()) return Support::no(std::move(why));
    return least_time_only(problem);
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    for (const auto& sequence : sequences(context)) {
      if (context.limits().spend_all(static_cast<std::int64_t>(sequence.size()))) break;
      const Gaps gaps(problem, sequence);
      const std::string_view chosen = context.options().choice("score");
      for (const double spare : kSpare)
        for (const auto& [word, score] : kScores) {
          if (context.done()) return context.finish();
          if (chosen != "all" && chosen != word) continue;
          if (!attempt(problem, context, gaps, spare, score)) break;
        }
    }
    return context.finish();
  }

 private:
  // The given order, and the computations of the start plans.
  static std::vector<std::vector<OpId>> sequences(const Context& context) {
    const Graph& graph = context.problem().graph;
    std::vector<std::vector<OpId>> result;
    result.emplace_back(graph.order().begin(), graph.order().end());
    for (const Plan& start : context.starts()) {
      std::vector<OpId> sequence = without_unread(context.problem(), computations(start));
      if (context.problem().order == Order::given && !follows_order(graph, sequence)) continue;
      if (std::ranges::find(result, sequence) == result.end())
        result.push_back(std::move(sequence));
    }
    return result;
  }

  // Returns whether there is anything to choose.
  static bool attempt(const Problem& problem, Context& context, const Gaps& gaps, double spare,
                      Score score) {
    const Bytes above = std::max(Bytes(0), gaps.peak() - problem.budget);
    if (above == Bytes(0) && spare > 0) return false;
    const Bytes target(problem.budget.count() -
                       static_cast<std::int64_t>(spare * static_cast<double>(above.count())));
    const auto events = gaps.choose(target, score, context.limits());
    if (!events) return false;
    const auto placed = place(problem, *events, context.limits());
    // Poll again before the plan is priced, which takes a while on huge graphs.
    if (!placed || context.limits().spend(static_cast<std::int64_t>(placed->events.size() / 4)))
      return false;
    context.offer_events(placed->events);
    return above > Bytes(0);
  }
};

}  // namespace

std::unique_ptr<Solver> make_offload() { return std::make_unique<Offload>(); }

}  // namespace lowtide::solve::offload

// Problem: choose which ops to recompute, and where, so that a graph fits into little memory.
//
// Idea: arrange the ops along a path such that few links cross each point of the path (a path
// decomposition), and along an order (a spine). The halves of the path can then be scheduled almost
// independently, and each half has smaller bags. Algorithm 3 (path_schedule.cpp) makes the
// schedule. A filter (common/repetition_filter.cpp) then holds tensors while memory allows.
//
// Source: R. Kumar, M. Purohit, Z. Svitkina, E. Vee, J. Wang, "Efficient Rematerialization for Deep
// Networks", NeurIPS 2019, appendix A. The path decompositions are not from the paper: greedy
// orders from both ends and the given order, improved by exchanging neighbours; the one with the
// smallest bags is used. A given order is the only spine; with a free order Algorithm 2 finds one.
//
// Invariant: every sequence is legal; only those within the budget are plans.
//
// Loses: against twremat on nearly all networks, as the paper states. The bags of a training graph
// have ten nodes or more, a spine doubles them, and the length is exponential in their size.
#include "lowtide/solve/kumar/pwremat/pwremat.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/solve/kumar/common/recursion_limits.h"
#include "lowtide/solve/kumar/pwremat/path_schedule.h"
#include "lowtide/solve/kumar/pwremat/spine.h"

namespace lowtide::solve::kumar::pwremat {

namespace {

const std::array<OptionSpec, 4>& specs() {
  static const std::array<OptionSpec, 4> table = {{
      {.name = "decomposition",
       .usage = "order that the path decomposition follows: the given one, a greedy one, or the "
                "better of both",
       .default_choice = "best",
       .choices = {"best", "given", "greedy"}},
      switch_option("improve", "exchange neighbours in that order while this makes bags smaller"),
      {.name = "limit",
       .usage = "stretches with fewer bags are computed without recomputation; 0: several values "
                "are tried",
       .default_number = 0,
       .low = 0,
       .high = 1e9,
       .whole = true},
      switch_option("filter",
                    "hold tensors while memory allows, which saves recomputation; off: the paper's "
                    "schedules unchanged"),
  }};
  return table;
}

constexpr int kPasses = 8;
constexpr std::size_t kMostBagNodes = 2'000'000;

class Run {
 public:
  Run(const Problem& problem, Context& context)
      : problem_(problem),
        context_(context),
        filters_(context.options().on("filter")),
        spend_([&context](std::int64_t units) { return context.limits().spend(units); }),
        limits_(context, filters_, static_cast<std::size_t>(context.options().number("limit"))) {}

  void run() {
    if (!limits_.begin()) return;
    const bool given = problem_.order == Order::given;
    try_spine(given);
    // A plan in the given order is one in any.
    limits_.run_long_until_feasible();
    if (filters_ && !given && !context_.done()) try_spine(true);
    limits_.improve_best();
    while (limits_.has_long() && !context_.done()) {
      limits_.run_next_long();
      limits_.improve_best();
    }
    limits_.offer_own_order();
    if (found_.empty()) found_ = "no path decomposition within the limits";
    const std::string why = limits_.why_no_plan();
    context_.set_note("pwremat: " + found_ + (why.empty() ? "" : "; " + why));
  }

 private:
  std::vector<Node> given_order() const {
    std::vector<Node> order;
    for (OpId op : problem_.graph.order()) order.push_back(static_cast<Node>(op.index()));
    return order;
  }

  void try_spine(bool given) {
    const OpGraph graph(problem_.graph, given);
    const auto path = decomposition(graph);
    if (!path) return;
    const Spine spine = given ? along_order(given_order(), *path) : add_spine(graph.makers, *path);
    std::size_t in_bags = 0;
    for (std::size_t i = 0; i < spine.order.size(); ++i)
      in_bags += static_cast<std::size_t>(spine.path.last[i] - spine.path.first[i]) + 1;
    if (context_.limits().stopped()) return;
    const bool fits = in_bags <= kMostBagNodes;
    if (found_.empty())
      found_ = "a path decomposition of width " + std::to_string(path->largest_bag() - 1) + ", " +
               std::to_string(spine.path.largest_bag() - 1) + " with a spine" +
               (fits ? "" : "; its bags are too large");
    if (!fits) return;
    const auto bags = static_cast<std::size_t>(spine.path.bags);
    limits_.run(
        [this, spined = number(graph, spine), order = spine.order](
            std::size_t limit, std::size_t most) -> std::optional<RecursionLimits::Schedule> {
          PathSchedule path_schedule(spined, limit, spend_);
          const auto schedule = path_schedule.schedule(most);
          if (!path_schedule.length()) return std::nullopt;
          RecursionLimits::Schedule result{*path_schedule.length(), {}};
          if (!schedule) return result;
          result.ops.reserve(schedule->size());
          for (Node node : *schedule)
            result.ops.emplace_back(
                static_cast<std::size_t>(order[static_cast<std::size_t>(node)]));
          return result;
        },
        bags);
  }

  // The one with the smallest bags of those that the options allow.
  std::optional<PathDecomposition> decomposition(const OpGraph& graph) {
    const Neighbours neighbours = undirected(graph);
    const std::string_view chosen = context_.options().choice("decomposition");
    std::vector<std::vector<Node>> orders;
    if (chosen != "greedy") orders.push_back(given_order());
    if (chosen != "given") {
      orders.push_back(narrow_order(neighbours, given_order().front(), spend_));
      orders.push_back(narrow_order(neighbours, given_order().back(), spend_));
    }
    std::optional<PathDecomposition> best;
    for (auto& order : orders) {
      if (context_.limits().stopped() || order.size() != neighbours.size()) return std::nullopt;
      if (context_.options().on("improve"))
        improve_order(neighbours, order, kPasses, context_.random(), spend_);
      PathDecomposition path = from_order(neighbours, order);
      if (!best || path.largest_bag() < best->largest_bag()) best = std::move(path);
    }
    return best;
  }

  static SpinedGraph number(const OpGraph& graph, const Spine& spine) {
    SpinedGraph spined;
    std::vector<Node> number(spine.order.size());
    for (std::size_t i = 0; i < spine.order.size(); ++i)
      number[static_cast<std::size_t>(spine.order[i])] = static_cast<Node>(i);
    spined.path.bags = spine.path.bags;
    std::vector<Node> inputs;
    for (std::size_t i = 0; i < spine.order.size(); ++i) {
      const auto op = static_cast<std::size_t>(spine.order[i]);
      spined.path.first.push_back(spine.path.first[op]);
      spined.path.last.push_back(spine.path.last[op]);
      inputs.clear();
      for (OpId maker : graph.makers[op]) inputs.push_back(number[maker.index()]);
      if (i > 0) inputs.push_back(static_cast<Node>(i) - 1);
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
      for (Node input : inputs) spined.inputs.push(input);
      spined.inputs.end_row();
    }
    return spined;
  }

  const Problem& problem_;
  Context& context_;
  bool filters_;
  std::function<bool(std::int64_t)> spend_;
  RecursionLimits limits_;
  std::string found_;
};

class PwRemat final : public Solver {
 public:
  std::string_view name() const override { return "pwremat"; }
  std::string_view summary() const override {
    return "Kumar et al.'s algorithm over path decompositions; long, narrow graphs";
  }
  Traits traits() const override { return {Trait::tight}; }
  std::span<const OptionSpec> options() const override { return specs(); }
  Support supports(const Problem& problem) const override { return least_time_only(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    Run(problem, context).run();
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_pwremat() { return std::make_unique<PwRemat>(); }

}  // namespace lowtide::solve::kumar::pwremat

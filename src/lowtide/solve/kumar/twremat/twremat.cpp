// Problem: choose which ops to recompute, and where, so that a graph fits into little memory.
//
// Idea: a tree decomposition of the undirected graph has a bag that separates it into components of
// at most half the size. Hold the values of the bag. For each op of the bag, compute its inputs in
// each component recursively, and free the other values of the component. So memory is the width
// times the number of levels, and a component is recomputed for each op of the bags. Stopping the
// recursion early trades memory for time. A filter (common/repetition_filter.cpp) then holds
// tensors while memory allows. The narrowest decomposition gives a plan quickly; wider ones, and
// others of the same width, often give a better plan.
//
// Source: R. Kumar, M. Purohit, Z. Svitkina, E. Vee, J. Wang, "Efficient Rematerialization for Deep
// Networks", NeurIPS 2019: Algorithm 1, Lemmas 1 and 3, TWRemat(k) of section 4.3. Not in the
// paper: separators that balance time and bytes instead of bags, the spine, and the filter. The
// spine links consecutive ops of the given order as if each read the one before, so that first
// computations follow that order. Computations that only such a link requires are removed at the
// end. docs/why/tree-width.md explains what the paper leaves open.
//
// Invariant: every sequence is legal; only those within the budget are plans.
//
// Loses: on random layered graphs, whose width grows with their size. Separators of a hundred ops
// are held together, and components are recomputed a hundred times.
#include "lowtide/solve/kumar/twremat/twremat.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lowtide/solve/kumar/common/recursion_limits.h"
#include "lowtide/solve/kumar/twremat/tree_schedule.h"

namespace lowtide::solve::kumar::twremat {

namespace {

constexpr std::array<std::pair<std::string_view, Elimination>, 3> kEliminations = {
    {{"min_fill", Elimination::min_fill},
     {"min_degree", Elimination::min_degree},
     {"given", Elimination::given}}};
constexpr std::size_t kMinFill = 0, kMinDegree = 1, kGiven = 2;

const std::array<OptionSpec, 5>& specs() {
  static const std::array<OptionSpec, 5> table = {{
      {.name = "decomposition",
       .usage = "elimination order of the tree decomposition: one of three, the narrowest, or all: "
                "the narrowest, then the others and random variations",
       .default_choice = "all",
       .choices = {"all", "narrowest", "min_fill", "min_degree", "given"}},
      {.name = "separators",
       .usage = "what separators balance: bags (Kumar et al.), the times and bytes of ops, or both "
                "in turn",
       .default_choice = "both",
       .choices = {"both", "unit", "real"}},
      {.name = "limit",
       .usage = "k of TWRemat(k): components with fewer bags are not divided; 0: several values "
                "are tried",
       .default_number = 0,
       .low = 0,
       .high = 1e9,
       .whole = true},
      switch_option("spine",
                    "decompose the graph with consecutive ops of the given order linked; off: only "
                    "if the order is given"),
      switch_option("filter",
                    "hold tensors while memory allows, which saves recomputation; off: the paper's "
                    "schedules unchanged"),
  }};
  return table;
}

constexpr std::size_t kDense = 600;
// The decompositions to try: each elimination with the given order, then with random perturbations
// of it.
constexpr std::size_t kTurns = 20;
constexpr double kShift = 0.2;  // of the ops, by which they move in these orders, at most

class Run {
 public:
  Run(const Problem& problem, Context& context)
      : problem_(problem),
        context_(context),
        positions_(positions_of(problem.graph)),
        spend_([&context](std::int64_t units) { return context.limits().spend(units); }),
        limits_(context, context.options().on("filter"),
                static_cast<std::size_t>(context.options().number("limit"))) {}

  void run() {
    if (!limits_.begin()) return;
    const Options& options = context_.options();
    const bool given = problem_.order == Order::given;
    views_.emplace_back(problem_.graph, given && options.on("spine"));
    if (options.on("filter") && options.on("spine")) views_.emplace_back(problem_.graph, !given);
    const bool all = options.choice("decomposition") == "all" && options.on("filter");
    std::size_t turns = all ? kTurns : 1;
    for (std::size_t turn = 0; turn < turns || limits_.has_long(); ++turn) {
      for (View& view : views_) {
        if (turn < turns && !context_.done()) try_view(view, turn);
        limits_.run_long_until_feasible();
      }
      if (turn + 1 >= std::min(turns, kEliminations.size())) limits_.run_next_long();
      limits_.improve_best();
      if (context_.done()) break;
      if (too_wide_) turns = 1;  // what comes after the narrowest is wider
    }
    limits_.offer_own_order();
    const std::string why = limits_.why_no_plan();
    context_.set_note("twremat: " + found_ + (why.empty() ? "" : "; " + why));
  }

 private:
  // The graph, with or without a spine.
  struct View {
    View(const Graph& of, bool spine) : graph(of, spine), neighbours(undirected(graph)) {}
    OpGraph graph;
    Neighbours neighbours;
    std::size_t narrowest = 0;  // of the eliminations
  };

  // The quickest elimination decides how wide others may be, and whether to go on at all.
  std::optional<TreeDecomposition> narrowest(View& view) {
    std::optional<TreeDecomposition> best;
    for (const std::size_t i : {kMinDegree, kMinFill, kGiven}) {
      EliminationSettings settings{.rule = kEliminations[i].second, .dense = kDense};
      if (best && (best->width() == 0 || best->width() >= kDense)) break;
      if (best) settings.widest = i == kMinFill ? best->width() : best->width() - 1;
      auto found = decompose(view.neighbours, positions_, settings, spend_);
      if (found) {
        best = std::move(found);
        view.narrowest = i;
      }
      if (context_.done()) break;
    }
    return best;
  }

  // Runs the narrowest first, then the others.
  std::optional<TreeDecomposition> decomposition(View& view, std::size_t turn) {
    const std::string_view chosen = context_.options().choice("decomposition");
    for (const auto& [word, rule] : kEliminations) {
      const EliminationSettings settings{.rule = rule, .dense = kDense};
      if (chosen == word) return decompose(view.neighbours, positions_, settings, spend_);
    }
    if (turn == 0) return narrowest(view);
    const std::size_t count = kEliminations.size();
    const Elimination rule = kEliminations[(view.narrowest + turn) % count].second;
    // If the bags hold consecutive ops together anyway, a spine makes no difference.
    const bool same = rule == Elimination::given && turn < count && &view != &views_.front();
    if (same) return std::nullopt;
    return decompose(view.neighbours, turn < count ? positions_ : shifted_positions(),
                     {.rule = rule, .widest = kDense - 1}, spend_);
  }

  std::vector<std::int32_t> shifted_positions() {
    const double most = kShift * static_cast<double>(positions_.size());
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < positions_.size(); ++i)
      order.emplace_back(positions_[i] + most * context_.random().uniform(), i);
    std::sort(order.begin(), order.end());
    std::vector<std::int32_t> result(positions_.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      result[order[i].second] = static_cast<std::int32_t>(i);
    return result;
  }

  // Weights: the sum of the op's shares of all time and of all memory.
  std::vector<double> real_weights() const {
    const Graph& graph = problem_.graph;
    std::vector<double> time(graph.op_count(), 0), bytes(graph.op_count(), 0);
    double all_time = 0, all_bytes = 0;
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      time[i] = static_cast<double>(graph.time(OpId(i)).count());
      for (TensorId made : graph.outputs(OpId(i)))
        bytes[i] += static_cast<double>(graph.bytes(made).count());
      all_time += time[i];
      all_bytes += bytes[i];
    }
    for (std::size_t i = 0; i < graph.op_count(); ++i)
      time[i] = time[i] / std::max(1.0, all_time) + bytes[i] / std::max(1.0, all_bytes);
    return time;
  }

  void try_view(View& view, std::size_t turn) {
    auto tree = decomposition(view, turn);
    if (!tree) return;
    tree = shrink(*tree);
    if (&view == &views_.front() && turn == 0) {
      too_wide_ = tree->width() >= kDense;
      found_ = "a tree decomposition of width " + std::to_string(tree->width());
    }
    const std::string_view chosen = context_.options().choice("separators");
    const auto try_weights = [&](const std::vector<double>& weights) {
      auto scheduler = [this, &graph = view.graph, division = divide(*tree, positions_, weights)](
                           std::size_t limit, std::size_t most) {
        return schedule(graph, stop_below(division, positions_, limit), most);
      };
      limits_.run(std::move(scheduler), tree->bags.size());
    };
    if (chosen != "real") try_weights({});
    if (chosen != "unit" && !context_.done()) try_weights(real_weights());
  }

  std::optional<RecursionLimits::Schedule> schedule(const OpGraph& graph, const Division& division,
                                                    std::size_t most) const {
    const TreeSchedule schedule(graph, division, positions_, spend_);
    const auto length = schedule.length();
    if (!length) return std::nullopt;
    const bool fits = *length <= static_cast<double>(most);
    return RecursionLimits::Schedule{*length, fits ? schedule.emit() : std::vector<OpId>{}};
  }

  const Problem& problem_;
  Context& context_;
  std::vector<std::int32_t> positions_;
  std::function<bool(std::int64_t)> spend_;
  std::deque<View> views_;  // schedulers keep references
  bool too_wide_ = false;
  std::string found_ = "no tree decomposition within the limits";
  RecursionLimits limits_;
};

class TwRemat final : public Solver {
 public:
  std::string_view name() const override { return "twremat"; }
  std::string_view summary() const override {
    return "Kumar et al.: recursive recomputation between balanced separators of a tree "
           "decomposition; tight budgets";
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

std::unique_ptr<Solver> make_twremat() { return std::make_unique<TwRemat>(); }

}  // namespace lowtide::solve::kumar::twremat

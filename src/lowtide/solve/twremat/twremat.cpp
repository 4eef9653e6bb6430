// Problem: which ops to compute again, and where, so that a graph fits into little memory.
//
// Idea: a tree decomposition of the graph, its directions forgotten, has a bag that cuts it into
// parts of half the size. Hold what is in the bag, compute what its ops read in each part by the
// same means, and forget the part's other values. So memory is the width times the levels, and the
// time is what the parts are computed again for each op of the bags. Stopping the recursion early
// trades memory for time. Then a filter (filter.cpp) holds what there is room for.
//
// From: R. Kumar, M. Purohit, Z. Svitkina, E. Vee, J. Wang, "Efficient Rematerialization for Deep
// Networks", NeurIPS 2019: Algorithm 1, Lemmas 1 and 3, TWRemat(k) of section 4.3. Ours are: the
// separators that balance time and bytes instead of bags, the spine, and the filter. The spine:
// with the order given, the ops in a row are linked as if each read the one before. The first
// computations then come in that order; what was computed for such a link alone, nothing reads, and
// it is left out again. docs/why/tree-width.md tells what the paper leaves open.
//
// Invariant: every sequence is legal; only those within the budget are plans.
//
// Loses: random layered graphs, whose width grows with their size: separators of a hundred ops are
// held together, and parts are computed again a hundred times.
#include "lowtide/solve/twremat/twremat.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lowtide/solve/limit_sweep.h"
#include "lowtide/solve/twremat/tree_schedule.h"

namespace lowtide {

namespace {

using twremat::Division;
using twremat::Elimination;
using twremat::EliminationSettings;
using twremat::TreeDecomposition;
using twremat::TreeSchedule;

constexpr std::array<std::pair<std::string_view, Elimination>, 3> kEliminations = {
    {{"min_fill", Elimination::min_fill},
     {"min_degree", Elimination::min_degree},
     {"given", Elimination::given}}};

const std::array<OptionSpec, 5>& specs() {
  static const std::array<OptionSpec, 5> table = {{
      {.name = "decomposition",
       .usage = "how the tree decomposition is made: one elimination order, or the narrowest",
       .default_choice = "narrowest",
       .choices = {"narrowest", "min_fill", "min_degree", "given"}},
      {.name = "separators",
       .usage = "what they halve: bags (Kumar et al.), times and bytes of ops, or each in turn",
       .default_choice = "both",
       .choices = {"both", "unit", "real"}},
      {.name = "limit",
       .usage = "the paper's k: parts with fewer bags are not divided; 0: many are tried",
       .default_number = 0,
       .low = 0,
       .high = 1e9,
       .whole = true},
      switch_option("spine", "link ops as the order gives them; off: where it is free, only then"),
      switch_option("filter",
                    "hold what there is room for; off: the paper's schedules as they are"),
  }};
  return table;
}

constexpr std::size_t kDense = 600;

class Run {
 public:
  Run(const Problem& problem, Context& context)
      : problem_(problem),
        context_(context),
        positions_(positions_of(problem.graph)),
        spend_([&context](std::int64_t units) { return context.limits().spend(units); }),
        sweep_(context, context.options().on("filter"),
               static_cast<std::size_t>(context.options().number("limit"))) {}

  void run() {
    if (!sweep_.begin()) return;
    const bool filters = context_.options().on("filter"), spine = context_.options().on("spine");
    const bool given = problem_.order == Order::given;
    graphs_.reserve(2);
    try_graph(given && spine);
    if (filters && spine && !context_.done()) try_graph(!given);
    sweep_.finish();
  }

 private:
  std::optional<TreeDecomposition> narrowest(const Neighbours& neighbours) {
    const std::string_view chosen = context_.options().choice("decomposition");
    std::optional<TreeDecomposition> best;
    for (const auto& [word, rule] : kEliminations) {
      if (chosen != "narrowest" && chosen != word) continue;
      EliminationSettings settings{.rule = rule, .dense = kDense};
      if (best && best->width() == 0) break;
      if (best) settings.widest = best->width() - 1;
      auto found = decompose(neighbours, positions_, settings, spend_);
      if (found) best = std::move(found);
      if (context_.done()) break;
    }
    if (best) best = shrink(*best);
    return best;
  }

  // Time and memory alike: shares of the whole.
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

  void try_graph(bool spine) {
    const OpGraph& graph = graphs_.emplace_back(problem_.graph, spine);
    const auto tree = narrowest(undirected(graph));
    if (!tree) return;
    if (graphs_.size() == 1)
      context_.set_note("twremat: a tree decomposition of width " + std::to_string(tree->width()));
    const std::string_view chosen = context_.options().choice("separators");
    const auto try_weights = [&](const std::vector<double>& weights) {
      auto scheduler = [this, &graph, division = divide(*tree, positions_, weights)](
                           std::size_t limit, std::size_t most) {
        return schedule(graph, stop_below(division, positions_, limit), most);
      };
      sweep_.run(std::move(scheduler), tree->bags.size());
    };
    if (chosen != "real") try_weights({});
    if (chosen != "unit" && !context_.done()) try_weights(real_weights());
  }

  std::optional<std::vector<OpId>> schedule(const OpGraph& graph, const Division& division,
                                            std::size_t most) const {
    const TreeSchedule schedule(graph, division, positions_, spend_);
    if (!schedule.length() || *schedule.length() > static_cast<double>(most)) return std::nullopt;
    return schedule.emit();
  }

  const Problem& problem_;
  Context& context_;
  std::vector<std::int32_t> positions_;
  std::function<bool(std::int64_t)> spend_;
  std::vector<OpGraph> graphs_;
  LimitSweep sweep_;
};

class TwRemat final : public Solver {
 public:
  std::string_view name() const override { return "twremat"; }
  std::string_view summary() const override {
    return "Kumar et al.: parts between balanced separators again and again; tight budgets";
  }
  std::span<const OptionSpec> options() const override { return specs(); }
  Support supports(const Problem& problem) const override { return least_time_only(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    Run(problem, context).run();
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_twremat() { return std::make_unique<TwRemat>(); }

}  // namespace lowtide

// Problem: plan graphs that are too large for a flat search, or that repeat the same block many
// times.
//
// Idea: partition the graph into blocks, these into blocks, and so on. Solve each block separately
// for several budgets, of the bytes in use while it runs and of the bytes saved between its forward
// and its backward half. One level up, choose among the options of inner blocks, until the whole
// network is one block with one budget. Equal blocks are solved once. The result is expanded to a
// sequence of ops, and is then an ordinary plan, which the search on the whole graph may improve
// (polish).
//
// Source: J. Gusak, X. Zhao, T. Le Hellard, Z. Li, L. Eyraud-Dubois, O. Beaumont, "HiRemate:
// Hierarchical Approach for Efficient Re-materialization of Neural Networks", ICML 2025. Not in the
// paper: the choice by prices, cuts as options of blocks, blocks of several sizes at the top level,
// and the polish. docs/why/hiremate.md describes all.
//
// Invariant: every plan was simulated on the whole graph. Estimated costs of blocks only guide the
// choice.
//
// Loses: on small graphs without repetition, where the search alone is as good and faster.
#include "lowtide/solve/hierarchy/hiremate/hiremate.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/sim/simulate.h"
#include "lowtide/solve/hierarchy/hiremate/in_order.h"
#include "lowtide/solve/hierarchy/hiremate/solved_blocks.h"

namespace lowtide::solve::hierarchy {

namespace {

constexpr double kBlockShare = 0.3;  // of the limits, for the blocks of all partitions
constexpr std::size_t kRounds = 3;   // of blocks and top level, if block solvers can continue
constexpr double kSlowShare = 0.6;   // of a round, for the blocks
constexpr double kTopShare = 0.4;    // of the rest, if there is a polish
constexpr std::int64_t kPartitionWork = 256;  // between two polls of the limits
constexpr double kQuickShare = 0.1;           // of the limits, for a plan before slow solvers run
constexpr std::size_t kMostSizes = 4;         // sizes of blocks at the top level
constexpr std::size_t kMostKnown = 20'000;    // ops of a network whose options are reused

class HiRemate final : public Solver {
 public:
  HiRemate(partition::PartitionerTable partitioners, BlockSolverTable block_solvers)
      : partitioners_(std::move(partitioners)), block_solvers_(std::move(block_solvers)) {
    std::vector<std::string_view> partitions, blocks;
    for (const auto& one : partitioners_.all()) partitions.push_back(one->name());
    for (const auto& one : block_solvers_.all()) blocks.push_back(one->name());
    specs_ = {
        {.name = "partition",
         .usage = "partitioners to run; the best plan of all is taken",
         .default_choice = "h_partition",
         .choices = partitions,
         .several = true},
        {.name = "block",
         .usage = "block solvers to run; their Pareto options are pooled, with save-all and "
                  "recompute-all",
         .default_choice = "cut,prices,rotor",
         .choices = blocks,
         .several = true},
        {.name = "top",
         .usage = "solvers of the root block; the best plan of all is taken",
         .default_choice = "prices,rotor,contracted",
         .choices = blocks,
         .several = true},
        whole("levels", "levels of the partition to use, counted from the root; 0: all", 0, 0, 1e6),
        whole("options",
              "N_o of the paper: options of all inner blocks together that h_ilp may choose among",
              100, 2, 1e6),
        {.name = "choice",
         .usage = "how those options are chosen: spread over their peaks (the paper), or by cost "
                  "per saved byte",
         .default_choice = "peaks",
         .choices = {"peaks", "prices"}},
        whole("peaks", "number of limits on a block's peak for which it is solved", 4, 1, 100),
        whole("saves", "number of limits on a block's saved bytes, for each limit on its peak", 6,
              1, 100),
        switch_option("polish", "at the end run search on the whole graph, from the best plan"),
    };
    own_options_ = specs_.size();
    // The options of all partitioners. Partitioners with an option of the same name share it.
    for (const auto& one : partitioners_.all())
      for (const OptionSpec& spec : one->options()) {
        if (std::ranges::count(specs_, spec.name, &OptionSpec::name) > 0) continue;
        specs_.push_back(spec);
        specs_.back().usage =
            usages_.emplace_back(std::string(one->name()) + ": " + std::string(spec.usage));
      }
  }

  std::string_view name() const override { return "hiremate"; }
  std::string_view summary() const override {
    return "HiRemate: a hierarchical partition, solved bottom-up; large graphs, and graphs with "
           "repeated blocks";
  }
  std::span<const OptionSpec> options() const override { return specs_; }
  Traits traits() const override { return {Trait::blocks}; }
  Support supports(const Problem& problem) const override {
    if (problem.graph.has_tensors_on_host())
      return Support::no("it does not plan for tensors at home on the host");
    return least_time_only(problem);
  }

  Outcome solve(const Problem& problem, Context& context) const override;

 private:
  static OptionSpec whole(std::string_view name, std::string_view usage, double standard,
                          double low, double high) {
    return {.name = name,
            .usage = usage,
            .default_number = standard,
            .low = low,
            .high = high,
            .whole = true};
  }

  // The value of a partitioner's option, if it was set; null for an option of hiremate with that
  // name.
  const std::string* passed_on(const Options& options, std::string_view name) const {
    const auto own = std::span(specs_).first(own_options_);
    return std::ranges::count(own, name, &OptionSpec::name) > 0 ? nullptr : options.given(name);
  }

  partition::PartitionerTable partitioners_;
  BlockSolverTable block_solvers_;
  std::deque<std::string> usages_;
  std::vector<OptionSpec> specs_;
  std::size_t own_options_ = 0;
};

class Run {
 public:
  Run(const Problem& problem, Context& context, const BlockSolverTable& solvers)
      : problem_(problem), context_(context), solvers_(solvers) {
    const Options& options = context.options();
    settings_.options = number("options");
    settings_.peaks = number("peaks");
    settings_.saves = number("saves");
    settings_.levels = number("levels");
    settings_.choosing = options.choice("choice") == "prices" ? Choosing::prices : Choosing::peaks;
    settings_.keep = !context.limits().settings().work;
    settings_.solvers = context.solvers();
    settings_.seed = context.seed();
    settings_.threads = context.threads();
  }

  std::vector<const BlockSolver*> named(std::string_view option) {
    std::vector<const BlockSolver*> found;
    for (const std::string_view name : context_.options().several(option)) {
      const BlockSolver* solver = solvers_.find(name);
      const std::string missing = solver->missing([this] { return context_.limits().over(); });
      std::string note = std::string(name) + " needs " + missing;
      if (missing.empty())
        found.push_back(solver);
      else if (std::ranges::find(notes_, note) == notes_.end())
        notes_.push_back(std::move(note));
    }
    return found;
  }

  // Plans by one partition, within a share of the limits.
  void plan(const Partition& partition, double share) {
    Limits& limits = context_.limits();
    SolvedBlocks blocks(problem_.graph, partition, settings_, limits);
    if (limits.spend_all(static_cast<std::int64_t>(problem_.graph.link_count()))) return;
    const std::vector<const BlockSolver*> all = named("block"), tops = named("top");
    // Fast block solvers first, so that there is a plan early.
    std::vector<const BlockSolver*> quick, slow;
    for (const BlockSolver* solver : all) (solver->is_slow() ? slow : quick).push_back(solver);
    solve(blocks, quick, share * kBlockShare);
    if (is_over()) return;
    const bool polish = context_.options().on("polish");
    // Slow solvers at the top level start from the options of fast ones.
    const BlockSolver* start = quick_start();
    const auto is_slow = [](const BlockSolver* top) { return top->is_slow(); };
    const bool begins_slowly =
        std::ranges::any_of(tops, is_slow) && std::ranges::find(tops, start) == tops.end();
    const auto ask_for_start = [&] {
      if (start != nullptr) ask({start}, blocks, partition, kQuickShare * share);
    };
    if (!slow.empty() || begins_slowly) ask_for_start();
    // A program that has not finished in one round continues in the next, from its solution.
    const bool in_rounds =
        !polish && std::ranges::any_of(slow, [](const BlockSolver* one) { return one->goes_on(); });
    bool is_cut = true;
    for (std::size_t left = in_rounds ? kRounds : 1; left > 0; --left) {
      const double part = share / static_cast<double>(left);
      const double blocks_part = part * (in_rounds ? kSlowShare : kBlockShare);
      const bool goes_on = !slow.empty() && solve(blocks, slow, blocks_part);
      if (is_over() || (!goes_on && !is_cut)) return;
      if (begins_slowly && !slow.empty()) ask_for_start();
      const double top_part = left > 1 ? part - blocks_part : polish ? part * kTopShare : part;
      is_cut = ask(tops, blocks, partition, top_part);
    }
  }

  std::string note() const {
    std::string note;
    for (const std::string& one : notes_) note += (note.empty() ? "" : "; ") + one;
    return note;
  }

 private:
  std::size_t number(std::string_view name) const {
    return static_cast<std::size_t>(context_.options().number(name));
  }

  // Null if there is none.
  const BlockSolver* quick_start() const {
    for (const auto& solver : solvers_.all())
      if (solver->is_quick_start()) return solver.get();
    return nullptr;
  }

  bool is_over() { return context_.done() || context_.limits().over(); }

  // Returns false if a further call would change nothing.
  bool solve(SolvedBlocks& blocks, const std::vector<const BlockSolver*>& solvers, double share) {
    Limits inner(context_.limits().remaining(share));
    const bool goes_on = blocks.solve(solvers, inner);
    context_.limits().spend_all(inner.work());
    return goes_on;
  }

  // Solves the top level, with blocks of several sizes. Returns true if a solver has used up its
  // share.
  bool ask(const std::vector<const BlockSolver*>& tops, const SolvedBlocks& blocks,
           const Partition& partition, double share) {
    const BlockProblem network(problem_.graph, partition);
    const std::vector<BlockBudget> budget = {{problem_.budget, Bytes::max()}};
    std::vector<std::size_t> sizes = blocks.sizes();
    // The largest blocks, and others that are a few times smaller each. Without blocks, the network
    // is one block.
    std::vector<std::size_t> tried = {SIZE_MAX};
    std::size_t last = sizes.empty() ? 0 : sizes.back();
    for (std::size_t i = sizes.size(); i-- > 0 && tried.size() < kMostSizes;)
      if (4 * sizes[i] <= last || (i == 0 && sizes[i] < last)) tried.push_back(last = sizes[i]);
    std::size_t left = tried.size() * tops.size();
    std::vector<Bytes> once;
    bool is_cut = false;
    for (const std::size_t size : tried) {
      Level level = blocks.root(size);
      if (once.empty()) once = used_once(partition.order);
      level.once = once;
      for (const BlockSolver* top : tops) {
        if (context_.done()) return true;
        const BlockTask task{.block = network,
                             .level = level,
                             .budgets = budget,
                             .known = known_,
                             .solvers = context_.solvers(),
                             .seed = context_.seed(),
                             .threads = context_.threads(),
                             .order = problem_.order};
        Limits inner(context_.limits().remaining(share / static_cast<double>(left--)));
        if (!top->supports(task).yes) continue;
        for (BlockOption& option : top->solve(task, inner)) {
          offer(option);
          if (problem_.graph.op_count() <= kMostKnown) known_.push_back(std::move(option));
        }
        context_.limits().spend_all(inner.work());
        is_cut = is_cut || inner.stopped();
      }
    }
    return is_cut;
  }

  // By op: the most bytes in use, if all ops are computed once in this order.
  std::vector<Bytes> used_once(std::span<const OpId> order) {
    const Plan plan = plan_from_sequence(problem_.graph, order);
    const Timeline timeline = simulate(problem_.graph, plan);
    std::vector<Bytes> used;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      if (plan.steps[i].is_compute()) used.push_back(timeline.live[i]);
    return used;
  }

  void offer(const BlockOption& option) {
    std::vector<OpId> sequence = option.forward;
    sequence.insert(sequence.end(), option.backward.begin(), option.backward.end());
    if (problem_.order == Order::given) sequence = in_given_order(problem_, sequence);
    context_.offer_sequence(sequence);
  }

  const Problem& problem_;
  Context& context_;
  const BlockSolverTable& solvers_;
  BlockSettings settings_;
  std::vector<BlockOption> known_;  // of the network
  std::vector<std::string> notes_;
};

// From the best plan so far, or the one with the smallest peak.
void polish(const Problem& problem, Context& context) {
  const Solver* search =
      context.solvers() == nullptr ? nullptr : context.solvers()->own(Trait::anytime);
  if (search == nullptr || context.done() || !search->supports(problem).yes) return;
  ContextSettings settings{.limits = context.limits().remaining(),
                           .seed = context.seed(),
                           .threads = context.threads(),
                           .options = Options(search->options()),
                           .starts = {},
                           .known = context.own_bound(),
                           .solvers = context.solvers(),
                           .watcher = [&](const Progress& progress) {
                             if (progress.plan != nullptr)
                               context.offer(*progress.plan, search->name());
                           }};
  settings.options.set("reorder", "0");
  if (context.has_plan())
    settings.starts.push_back(context.best());
  else if (context.smallest())
    settings.starts.push_back(*context.smallest());
  Context inner(problem, search->name(), std::move(settings));
  const Outcome outcome = search->solve(problem, inner);
  if (outcome.plan) context.offer(*outcome.plan, search->name());
  context.limits().spend_all(inner.limits().work());
}

Outcome HiRemate::solve(const Problem& problem, Context& context) const {
  context.offer_events(own_events(problem.graph));
  const Options& options = context.options();
  const std::vector<std::string_view> names = options.several("partition");
  Run run(problem, context, block_solvers_);
  for (std::size_t i = 0; i < names.size() && !context.done(); ++i) {
    const partition::Partitioner& partitioner = *partitioners_.find(names[i]);
    Options own(partitioner.options());
    for (const OptionSpec& spec : partitioner.options())
      if (const std::string* value = passed_on(options, spec.name)) own.set(spec.name, *value);
    const auto partition = partitioner.partition(problem.graph, own, [&] {
      return context.limits().over() || context.limits().spend(kPartitionWork);
    });
    if (!partition) break;
    run.plan(*partition, 1.0 / static_cast<double>(names.size() - i));
  }
  // A solver that ended because the time is up says so, whatever its work.
  if (context.limits().over()) context.limits().spend_all(Limits::kPollWork);
  if (!run.note().empty()) context.set_note(run.note());
  if (options.on("polish")) polish(problem, context);
  return context.finish();
}

}  // namespace

std::unique_ptr<Solver> make_hiremate(partition::PartitionerTable partitioners,
                                      BlockSolverTable block_solvers) {
  return std::make_unique<HiRemate>(std::move(partitioners), std::move(block_solvers));
}

std::unique_ptr<Solver> make_hiremate() {
  return make_hiremate(partition::make_partitioners(), make_block_solvers());
}

}  // namespace lowtide::solve::hierarchy

// Problem: choose which ops to recompute, and where, so that a plan keeps the budget and has the
// least overhead.
//
// Idea: an integer program over stages (program.cpp), solved by HiGHS. If that is too large, its LP
// relaxation with the two-stage rounding of the paper's section 5: solve the linear program for 0.9
// of the budget, round the kept tensors at a threshold (each of 0.1 to 0.9) or at random with the
// probabilities of the relaxation, and compute the fewest ops that these checkpoints need.
//
// Source: P. Jain, A. Jain, A. Nrusimha, A. Gholami, P. Abbeel, K. Keutzer, I. Stoica, J. Gonzalez,
// "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys 2020.
//
// Invariant: every plan is priced by `simulate`, which charges less memory than the model. The
// optimum and the bound of the model are in the outcome's `model`, never in its bound. What the
// program of the frontier (frontier.cpp) proves holds for every plan in the order; if the order is
// given, it is a bound of the problem.
//
// Loses: beyond a hundred ops, since the program has n^2 + nm variables. Rounded plans often exceed
// the budget, which the note reports.
#include "lowtide/solve/exact/checkmate/checkmate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "lowtide/engines/mip.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/exact/checkmate/frontier.h"
#include "lowtide/solve/exact/checkmate/program.h"
#include "lowtide/solve/exact/common/model_scope.h"
#include "lowtide/solve/exact/common/start.h"
#include "lowtide/solve/interface/engine_run.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::exact::checkmate {

namespace {

constexpr std::size_t kMostOps = 600;
constexpr std::size_t kMostEvery = 200;  // ops, for the program with every step
constexpr int kSamples = 50;             // of random rounding

const std::array<OptionSpec, 4>& specs() {
  static const std::array<OptionSpec, 4> table = {{
      {.name = "mode",
       .usage = "the integer program; its LP relaxation, rounded by thresholds or at random; or a "
                "smaller program over the frontier, whose bounds hold for the problem itself",
       .default_choice = "milp",
       .choices = {"milp", "rounding", "random", "frontier"}},
      {.name = "form",
       .usage = "how frees are modelled: by the last stage that holds a value, or by the paper's "
                "FREE and kappa",
       .default_choice = "tight",
       .choices = {"tight", "paper"}},
      {.name = "allowance",
       .usage = "share of the budget given to the LP relaxation that is rounded",
       .default_number = 0.9,
       .low = 0.1,
       .high = 1},
      start_option(),
  }};
  return table;
}

class Run {
 public:
  Run(const Problem& problem, Context& context)
      : problem_(problem),
        graph_(problem.graph),
        context_(context),
        engine_run_(context.limits(), context.seed(), context.threads()) {}

  void run() {
    context_.offer_sequence(graph_.order());
    if (context_.limits().spend(static_cast<std::int64_t>(graph_.op_count())) || context_.done())
      return;
    engine_ = engine_run_.find(engines::EngineKind::highs);
    start_ = start_from_others(problem_, context_);
    if (context_.done()) return;
    const bool whole = context_.options().choice("mode") == "milp";
    const auto order = start_ && problem_.order == Order::free
                           ? first_computations(graph_, *start_)
                           : std::vector<OpId>(graph_.order().begin(), graph_.order().end());
    if (context_.options().choice("mode") == "frontier")
      solve_frontier(order);
    else
      solve_stages(order, whole);
    if (!failure_.empty()) context_.set_note("checkmate: " + failure_);
  }

 private:
  void solve_stages(const std::vector<OpId>& order, bool whole) {
    const ProblemWithoutInPlace model(problem_);
    left_out_ = model.words();
    const Problem problem = model.problem();
    Program program(problem, order,
                    {.relaxed = !whole,
                     .tight = context_.options().choice("form") == "tight",
                     .allowance = whole ? 1.0 : context_.options().number("allowance")},
                    context_.limits());
    if (program.too_large()) failure_ = "a program of so many ops and links is too large for HiGHS";
    if (context_.done() || !failure_.empty()) return;
    whole ? solve_whole(program) : solve_relaxed(program);
  }

  // Offers the sequence if it is a plan, and returns whether it is.
  bool offer(const std::vector<OpId>& sequence) {
    std::vector<std::uint8_t> made(graph_.op_count(), 0);
    for (const OpId op : sequence) {
      for (const TensorId read : graph_.inputs(op))
        if (!graph_.is_input(read) && made[graph_.producer(read).index()] == 0) return false;
      made[op.index()] = 1;
    }
    if (std::count(made.begin(), made.end(), 0) > 0) return false;
    if (simulate(graph_, plan_from_sequence(graph_, sequence)).violation) return false;
    context_.offer_sequence(without_unread(problem_, sequence));
    return true;
  }

  std::string order() const { return order_words(problem_, start_.has_value()); }

  bool affords(const engines::MipModel& model) {
    if (engine_run_.affords(model.entry_count())) return true;
    if (context_.limits().stopped()) return false;
    failure_ = "a program of " + std::to_string(model.entry_count()) +
               " entries needs a time limit, or a larger work limit";
    return false;
  }

  // `until_done`: stop as soon as the problem itself is solved.
  engines::MipAnswer ask(const engines::MipModel& model, const engines::MipWatch& watch,
                         bool until_done = false) {
    if (!affords(model)) return {};
    engines::EngineLimits limits = engine_run_.limits();
    limits.stop = [this, until_done, stop = limits.stop] {
      return stop() || (until_done && context_.done()) || !failure_.empty();
    };
    engines::MipAnswer answer = engines::solve_mip(model, engine_, limits, watch);
    engine_run_.charge(answer.end);
    if (failure_.empty()) failure_ = answer.end.failure;
    return answer;
  }

  void solve_whole(Program& program) {
    if (start_) program.start(*start_);
    std::optional<Ticks> found;
    engines::MipWatch watch;
    watch.incumbent = [&](std::span<const double> values) {
      if (!failure_.empty()) return;
      if (!offer(program.sequence(values)))
        failure_ = "HiGHS returned an invalid solution";
      else
        found = std::min(found.value_or(Ticks::max()), program.duration(values));
    };
    const engines::MipAnswer answer = ask(program.model(), watch);
    if (!failure_.empty()) return;
    ModelClaim claim{.name = "checkmate, at its own prices, " + order() + left_out_,
                     .bound = graph_.total_time(),
                     .optimal = false,
                     .infeasible = answer.end.status == engines::EngineStatus::infeasible};
    if (answer.end.bound) claim.bound = program.unscaled(*answer.end.bound);
    if (found && (claim.infeasible || claim.bound > *found)) {
      failure_ = "HiGHS claims a bound that its own solution beats";
      return;
    }
    // A solution may exceed the budget slightly, by HiGHS's tolerance; then it is no plan.
    const bool fits = found && context_.has_plan() && context_.best_cost().duration <= *found;
    const Ticks slack(static_cast<std::int64_t>(kTolerance * 2 *
                                                static_cast<double>(graph_.total_time().count())));
    claim.optimal = answer.end.status == engines::EngineStatus::optimal && fits &&
                    *found - claim.bound <= slack;
    context_.set_model(std::move(claim));
  }

  // First the program of the critical steps only, then that of every step.
  void solve_frontier(const std::vector<OpId>& order) {
    // The duration of a plan in this order: a bound above it must be wrong.
    if (problem_.order == Order::free && start_) {
      const Cost cost = simulate(graph_, plan_from_sequence(graph_, *start_)).cost;
      if (cost.peak <= problem_.budget) known_ = cost.duration;
    }
    ModelClaim claim{.name = "checkmate, the frontier's critical steps " + this->order(),
                     .bound = graph_.total_time()};
    for (const bool every : {false, true}) {
      if (every && graph_.op_count() > kMostEvery) break;
      if (every) claim.name = "checkmate, the frontier " + this->order();
      const engines::EngineStatus status = solve_frontier(order, every, claim.bound);
      if (!failure_.empty()) return;
      claim.infeasible = status == engines::EngineStatus::infeasible;
      if (claim.infeasible && known()) {
        failure_ = "HiGHS claims that there is no plan beside one that verifies";
        return;
      }
      claim.optimal =
          status == engines::EngineStatus::optimal || (known() && claim.bound == *known());
      if (context_.done() || claim.infeasible || !claim.optimal) break;
    }
    context_.set_model(std::move(claim));
  }

  std::optional<Ticks> known() const {
    if (problem_.order == Order::free || !context_.has_plan()) return known_;
    return context_.best_cost().duration;
  }

  engines::EngineStatus solve_frontier(const std::vector<OpId>& order, bool every, Ticks& bound) {
    FrontierProgram program(problem_, order, every, context_.limits());
    if (context_.done()) return engines::EngineStatus::unknown;
    if (start_) program.start(*start_);
    const auto raise = [&](double objective) {
      bound = std::max(bound, program.bound(objective));
      if (problem_.order == Order::given) context_.raise_engine_bound(bound);
      check_bound(bound);
    };
    engines::MipWatch watch;
    watch.bound = raise;
    watch.incumbent = [&](std::span<const double> values) {
      if (failure_.empty()) offer(program.sequence(values));
      check_bound(bound);
    };
    const engines::MipAnswer answer = ask(program.model(), watch, true);
    if (failure_.empty() && answer.end.bound) raise(*answer.end.bound);
    return answer.end.status;
  }

  void check_bound(Ticks bound) {
    if (known() && bound > *known()) failure_ = "HiGHS claims a bound that a verified plan beats";
  }

  void solve_relaxed(Program& program) {
    const engines::MipAnswer answer = ask(program.model(), {});
    if (!failure_.empty()) return;
    if (answer.end.status != engines::EngineStatus::optimal) {
      const bool none = answer.end.status == engines::EngineStatus::infeasible;
      failure_ = none ? "the relaxation has no solution in that share (allowance) of the budget"
                      : "the relaxation was not solved in time, so there is nothing to round";
      return;
    }
    const auto shares = program.kept(answer.values);
    int tried = 0, kept = 0;
    std::optional<Bytes> least;
    const auto round = [&](auto keep) {
      Checkpoints checkpoints(shares.size(), std::vector<std::uint8_t>(graph_.tensor_count(), 0));
      for (std::size_t t = 0; t < shares.size(); ++t)
        for (std::size_t x = 0; x < shares[t].size(); ++x)
          checkpoints[t][x] =
              t + 1 == shares.size() ? graph_.is_output(TensorId(x)) : keep(shares[t][x]);
      const auto sequence = program.completed(checkpoints);
      if (context_.limits().spend(static_cast<std::int64_t>(sequence.size()))) return;
      for (const OpId op : sequence)
        if (!graph_.recomputable(op) && std::count(sequence.begin(), sequence.end(), op) > 1)
          return;
      const Timeline timeline = simulate(graph_, plan_from_sequence(graph_, sequence));
      if (timeline.violation) return;
      ++tried;
      kept += timeline.cost.peak <= problem_.budget;
      least = std::min(least.value_or(Bytes::max()), timeline.cost.peak);
      context_.offer_sequence(sequence);
    };
    if (context_.options().choice("mode") == "rounding")
      for (int i = 1; i <= 9 && !context_.done(); ++i)
        round([&](double share) { return share > i / 10.0; });
    else
      for (int i = 0; i < kSamples && !context_.done(); ++i)
        round([&](double share) { return context_.random().chance(share); });
    if (tried == 0 && !context_.limits().stopped()) {
      failure_ = "every rounding recomputes an op that is not recomputable";
      return;
    }
    std::string note = "checkmate: " + std::to_string(kept) + " of " + std::to_string(tried) +
                       " roundings keep the budget";
    if (kept == 0 && least)
      note += "; the one with the smallest peak is over it by " +
              std::to_string((*least - problem_.budget).count()) + " bytes";
    context_.set_note(std::move(note));
  }

  const Problem& problem_;
  const Graph& graph_;
  Context& context_;
  EngineRun engine_run_;
  engines::EngineState engine_;
  std::optional<std::vector<OpId>> start_;
  std::optional<Ticks> known_;  // duration of the start plan, if the order is free
  std::string left_out_;        // what the model omits of the problem, for the claim
  std::string failure_;
};

class Checkmate final : public Solver {
 public:
  std::string_view name() const override { return "checkmate"; }
  std::string_view summary() const override {
    return "Checkmate (Jain et al.): integer program over stages, or its rounded LP relaxation, by "
           "HiGHS; a baseline";
  }
  std::span<const OptionSpec> options() const override { return specs(); }
  std::string missing(const std::function<bool()>& stop) const override {
    return engines::find_engine(engines::EngineKind::highs, {}, stop).missing;
  }
  Traits traits() const override { return {Trait::proving, Trait::external}; }
  Support supports(const Problem& problem) const override {
    return small_enough(problem, kMostOps, "program");
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    Run(problem, context).run();
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_checkmate() { return std::make_unique<Checkmate>(); }

}  // namespace lowtide::solve::exact::checkmate

// Problem: choose which ops to recompute, and where, so that a plan keeps the budget and has the
// least overhead.
//
// Idea: each computation of an op begins a retention interval, from the event at which the op is
// computed to the last event at which its result is read. Each op has at most C_v intervals, each
// with a start s, an end e and a literal a that says whether the interval exists: O(n) integers,
// which suit a constraint solver (retention.cpp has the model). There are two phases. The first
// looks for any plan within the budget by minimising max(M_var, M), starting from the given order,
// which is always a solution. The second minimises the duration, starting from the result of the
// first.
//
// Source: B. Bartan, H. Li, H. Teague, C. Lott, B. Dilkina, "Moccasin: Efficient Tensor
// Rematerialization for Neural Networks", ICML 2023, sections 2.1 to 2.4. docs/why/moccasin.md
// lists the differences.
//
// Invariant: the optimum and the bound hold for a narrower problem (at most C_v computations of an
// op; staged: the ops of a stage in the given order). So they are in the outcome's `model`, never
// in its bound.
//
// Loses: on graphs of a thousand ops, where CP-SAT takes minutes to its first solution; and if an
// op must be computed more than C_v times.
#include "lowtide/solve/exact/moccasin/moccasin.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "lowtide/engines/cp.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/exact/common/model_scope.h"
#include "lowtide/solve/exact/common/start.h"
#include "lowtide/solve/exact/moccasin/retention.h"
#include "lowtide/solve/interface/engine_run.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::exact::moccasin {

namespace {

constexpr std::size_t kMostOps = 3000;
constexpr std::size_t kMostLogOps = 1000;
constexpr std::size_t kFreeOps = 40;  // ops: free events are tractable up to here
constexpr int kMostIntervals = 8;     // for each op

const std::array<OptionSpec, 5>& specs() {
  static const std::array<OptionSpec, 5> table = {{
      {.name = "intervals",
       .usage = "C_v of the paper: most computations of an op; a start plan with more raises it "
                "for that op",
       .default_number = 2,
       .low = 1,
       .high = kMostIntervals,
       .whole = true,
       .of_ops = true},
      {.name = "events",
       .usage = "domain of event times: free (9), staged by the order (11), or auto: free only for "
                "small graphs with a free order",
       .default_choice = "auto",
       .choices = {"auto", "free", "staged"}},
      {.name = "precedence",
       .usage = "encoding of the precedence constraint (5): a literal for each interval of an "
                "input, or the paper's reservoirs",
       .default_choice = "literals",
       .choices = {"literals", "reservoir"}},
      {.name = "lengths",
       .usage = "lengths of intervals: any that ends at a reader, or about 5n log-spaced values, "
                "as in the authors' code",
       .default_choice = "any",
       .choices = {"any", "log"}},
      start_option(),
  }};
  return table;
}

class Run {
 public:
  Run(const Problem& asked, Context& context)
      : asked_(asked),
        model_(asked),
        problem_(model_.problem()),
        graph_(problem_.graph),
        context_(context),
        engine_run_(context.limits(), context.seed(), context.threads()) {}

  void run() {
    for (const double each : context_.options().numbers("intervals", graph_))
      intervals_.push_back(static_cast<int>(each));
    const auto order = graph_.order();
    context_.offer_sequence(order);
    if (context_.limits().spend(static_cast<std::int64_t>(graph_.op_count())) || context_.done())
      return;
    if (log_lengths() && graph_.op_count() > kMostLogOps) {
      context_.set_note("moccasin: log-spaced lengths are millions of values beyond " +
                        std::to_string(kMostLogOps) + " ops");
      return;
    }
    engine_ = engine_run_.find(engines::EngineKind::cpsat);
    start_ = start_from_others(asked_, context_);
    start_given_ = start_.has_value();
    if (context_.done()) return;
    if (start_) admit(*start_);
    const Events events = make_events();
    known_ = held_start(events);
    staged_ = events.domain() == Domain::staged;
    if (!start_ || !fits(*start_)) find_any(events);
    if (!context_.done() && !refuted_ && failure_.empty()) find_shortest(events);
    if (!failure_.empty()) context_.set_note("moccasin: " + failure_);
  }

 private:
  bool fits(const std::vector<OpId>& sequence) const {
    return simulate(graph_, plan_from_sequence(graph_, sequence)).cost.peak <= problem_.budget;
  }

  // Raises C_v for ops that the sequence computes more often.
  void admit(const std::vector<OpId>& sequence) {
    std::vector<int> computed(graph_.op_count(), 0);
    for (const OpId op : sequence) ++computed[op.index()];
    for (std::size_t i = 0; i < computed.size(); ++i)
      intervals_[i] = std::max(intervals_[i], std::min(computed[i], kMostIntervals));
  }

  bool log_lengths() const { return context_.options().choice("lengths") == "log"; }

  // The duration of the start plan in the model, if it keeps the budget and the model contains it.
  std::optional<Ticks> held_start(const Events& events) const {
    if (!start_ || log_lengths()) return std::nullopt;
    const std::vector<OpId> seen = at_events(events, graph_.op_count(), *start_);
    std::vector<int> computed(graph_.op_count(), 0);
    for (const OpId op : seen)
      if (++computed[op.index()] > intervals_[op.index()]) return std::nullopt;
    const Timeline timeline = simulate(graph_, plan_from_sequence(graph_, seen));
    if (timeline.violation || timeline.cost.peak > problem_.budget) return std::nullopt;
    return timeline.cost.duration;
  }

  Events make_events() const {
    std::vector<OpId> order(graph_.order().begin(), graph_.order().end());
    if (start_ && problem_.order == Order::free) order = first_computations(graph_, *start_);
    const std::string_view chosen = context_.options().choice("events");
    const bool free = chosen == "free" || (chosen == "auto" && problem_.order == Order::free &&
                                           graph_.op_count() <= kFreeOps);
    return {graph_, free ? Domain::free : Domain::staged, std::move(order), intervals_};
  }

  RetentionSettings settings(bool memory_first) const {
    return {.memory_first = memory_first,
            .reservoir = context_.options().choice("precedence") == "reservoir",
            .log_lengths = log_lengths()};
  }

  // Offers the plan of these values. Returns false, and sets failure_, if they are no plan.
  bool take(const RetentionModel& model, std::span<const std::int64_t> values) {
    auto sequence = model.sequence(values);
    std::string wrong = "computes an op before its inputs";
    if (sequence) {
      const Timeline timeline = simulate(graph_, plan_from_sequence(graph_, *sequence));
      wrong = timeline.violation ? timeline.violation->reason : "";
    }
    if (!wrong.empty()) {
      failure_ = "CP-SAT returned an invalid solution: " + wrong;
      return false;
    }
    found_ = without_unread(problem_, *sequence);
    context_.offer_sequence(found_);
    return true;
  }

  engines::CpAnswer ask(const RetentionModel& model, const engines::CpWatch& more) {
    engines::CpWatch watch = more;
    watch.incumbent = [&](std::span<const std::int64_t> values) {
      if (failure_.empty()) take(model, values);
    };
    engines::EngineLimits limits = engine_run_.limits();
    limits.stop = [this, stop = limits.stop] { return stop() || !failure_.empty(); };
    engines::CpAnswer answer = engines::solve_cp(model.model(), engine_, limits, watch);
    engine_run_.charge(answer.end);
    if (failure_.empty()) failure_ = answer.end.failure;
    return answer;
  }

  void find_any(const Events& events) {
    RetentionModel model(problem_, events, settings(true), context_.limits());
    if (context_.done()) return;
    model.hint(start_ ? *start_ : std::vector<OpId>(events.order().begin(), events.order().end()));
    found_.clear();
    const engines::CpAnswer answer = ask(model, {});
    if (!found_.empty()) start_ = found_;
    const bool over = answer.end.status == engines::EngineStatus::optimal && !context_.has_plan();
    if (!over || !failure_.empty()) return;
    refuted_ = true;
    claim({.infeasible = true});
  }

  void find_shortest(const Events& events) {
    RetentionModel model(problem_, events, settings(false), context_.limits());
    if (context_.done() || model.hopeless()) return;
    if (start_) model.hint(*start_);
    ModelClaim claimed{.name = "", .bound = graph_.total_time(), .optimal = false};
    engines::CpWatch watch;
    watch.bound = [&](double bound) {
      claimed.bound = std::max(claimed.bound, Ticks(model.unscaled(bound)));
    };
    const engines::CpAnswer answer = ask(model, watch);
    if (answer.end.bound)
      claimed.bound = std::max(claimed.bound, Ticks(model.unscaled(*answer.end.bound)));
    claimed.infeasible = answer.end.status == engines::EngineStatus::infeasible;
    if (!failure_.empty()) return;
    // A bound above a plan that the model contains must be wrong.
    if (!answer.values.empty()) known_ = std::min(known_.value_or(Ticks::max()), found_cost());
    if (known_ && (claimed.infeasible || claimed.bound > *known_)) {
      failure_ = "CP-SAT claims a bound that a plan of the model beats";
      return;
    }
    claimed.optimal = answer.end.status == engines::EngineStatus::optimal;
    claim(claimed);
  }

  Ticks found_cost() const {
    Ticks sum;
    for (const OpId op : found_) sum += graph_.time(op);
    return sum;
  }

  void claim(ModelClaim claimed) {
    // Ops that are not recomputable have one interval in any case.
    int least = kMostIntervals, most = 1;
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      if (!graph_.recomputable(OpId(i))) continue;
      least = std::min(least, intervals_[i]);
      most = std::max(most, intervals_[i]);
    }
    least = std::min(least, most);
    claimed.name = "moccasin, at most " + (least < most ? std::to_string(least) + " to " : "") +
                   std::to_string(most) + " computation" + (most > 1 ? "s" : "") + " of an op, ";
    if (!staged_ && problem_.order == Order::free)
      claimed.name += "in any order";
    else
      claimed.name += (staged_ ? "staged " : "") + order_words(problem_, start_given_);
    if (log_lengths()) claimed.name += ", log-spaced lengths";
    claimed.name += model_.words();
    context_.set_model(std::move(claimed));
  }

  const Problem& asked_;
  const ProblemWithoutInPlace model_;
  const Problem problem_;  // as the model sees it
  const Graph& graph_;
  Context& context_;
  EngineRun engine_run_;
  engines::EngineState engine_;
  std::vector<int> intervals_;              // C_v of each op
  std::optional<std::vector<OpId>> start_;  // later the result of the first phase
  bool start_given_ = false, staged_ = false, refuted_ = false;
  std::optional<Ticks> known_;  // the shortest duration of a plan that the model contains
  std::vector<OpId> found_;
  std::string failure_;
};

class Moccasin final : public Solver {
 public:
  std::string_view name() const override { return "moccasin"; }
  std::string_view summary() const override {
    return "Moccasin (Bartan et al.): retention intervals, solved by CP-SAT; exact for few "
           "recomputations of each op";
  }
  std::span<const OptionSpec> options() const override { return specs(); }
  std::string missing(const std::function<bool()>& stop) const override {
    return engines::find_engine(engines::EngineKind::cpsat, {}, stop).missing;
  }
  Traits traits() const override { return {Trait::anytime, Trait::external}; }
  Support supports(const Problem& problem) const override {
    return small_enough(problem, kMostOps, "domain");
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    Run(problem, context).run();
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_moccasin() { return std::make_unique<Moccasin>(); }

}  // namespace lowtide::solve::exact::moccasin

// Problem: choose which ops to recompute, and where, so that the plan keeps the budget with the
// least extra time.
//
// Idea: the state is the sequence of computations; the lifetimes of tensors follow from it.
// Simulated annealing over sequences minimizes duration + price x bytes over the budget. The price
// is steered so that the state keeps the budget every now and then. Rounds of growing length start
// from the best plan so far. docs/why/search.md explains the choice of the state.
//
// Invariant: the best sequence keeps the budget, and its duration is exact. Each move can be
// undone.
//
// Loses: at budgets so tight that long chains must be recomputed in one piece. No single insertion
// lowers the energy there, so the search needs a start plan that keeps the budget.
#include "lowtide/solve/local/search/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "lowtide/solve/local/search/anneal.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::local::search {

namespace {

const std::array<OptionSpec, 17>& specs() {
  static const std::array<OptionSpec, 17> table = {{
      {.name = "rounds",
       .usage = "annealing rounds; each starts from the best plan so far and is longer than the "
                "one before",
       .default_number = 7,
       .low = 1,
       .high = 20,
       .whole = true},
      {.name = "hot",
       .usage = "temperature at the start of a round, in mean op durations",
       .default_number = 0.03,
       .low = 0,
       .high = 100},
      {.name = "cold",
       .usage = "temperature at the end of a round, in mean op durations",
       .default_number = 0.0005,
       .low = 0,
       .high = 100},
      {.name = "reorder",
       .usage =
           "free order only: share of the limits spent on the order alone, without recomputation",
       .default_number = 0.2,
       .low = 0,
       .high = 1},
      switch_option("orders",
                    "free order only: change the order of first computations; off: keep that of "
                    "the start plan"),
      switch_option("near",
                    "price of a byte over the budget at the start of a round: the start plan's "
                    "marginal price; off: far lower, which first discards most of the start plan"),
      switch_option("remove", "move: delete a recomputation"),
      switch_option(
          "exchange",
          "move: delete a recomputation and evict another tensor over a retention gap, at once"),
      switch_option("shift", "move: shift a computation within the order"),
      switch_option("push", "move: shift a computation together with the ops that block it"),
      switch_option("chains",
                    "a recomputation also recomputes those of its inputs that cost more to hold"),
      switch_option("estimates",
                    "estimate each move first, and reject hopeless ones before changing the state"),
      switch_option("recompute", "with a link: allow recomputation"),
      switch_option("swap",
                    "with a link: allow moves that offload and prefetch; off: keep the copies of "
                    "the start plan"),
      switch_option(
          "holds", "with a link: hold a tensor on the device until its copy to the host has ended"),
      switch_option(
          "queues",
          "with a link: a move of one copy also moves the copies that block it in the queue"),
      switch_option("handover",
                    "with a link: move: swap a recomputed tensor, and recompute or hold swapped "
                    "ones to free the link for it"),
  }};
  return table;
}

class Search final : public Solver {
 public:
  std::string_view name() const override { return "search"; }
  std::string_view summary() const override {
    return "local search (simulated annealing) over sequences of ops, from the best plan so far; "
           "any graph, any budget";
  }
  Traits traits() const override { return {Trait::anytime, Trait::transfers}; }
  std::span<const OptionSpec> options() const override { return specs(); }
  Support supports(const Problem& problem) const override {
    if (std::string why = too_large(problem); !why.empty()) return Support::no(std::move(why));
    const Graph& graph = problem.graph;
    for (std::size_t i = 0; graph.has_tensors_on_host() && i < graph.tensor_count(); ++i)
      if (const TensorId id(i); graph.on_host(id) && graph.stays(id))
        return Support::no(
            "it does not plan for tensors at home on the host that the caller "
            "holds once they are on the device");
    return least_time_only(problem);
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    std::vector<std::vector<Event>> starts = usable_starts(problem, context);
    if (context.done()) return context.finish();
    const Network network(problem);
    // With 100,000 ops, each of these steps takes tens of milliseconds.
    context.limits().spend(static_cast<std::int64_t>(problem.graph.op_count() / 8));
    if (context.done()) return context.finish();
    Anneal anneal(network, context, shifts_first(context));
    context.limits().spend(static_cast<std::int64_t>(problem.graph.op_count() / 8));
    run(context, anneal, starts);
    anneal.offer_best();
    // If no plan keeps the budget, the last state may still serve as a start plan of others.
    if (!anneal.has_best() && anneal.state().item_count() > 0)
      context.offer_events(anneal.state().sequence());
    // The time may have run out since the last poll.
    if (context.limits().settings().seconds) context.limits().spend(Limits::kPollWork);
    return context.finish();
  }

 private:
  static constexpr double kGrowth = 1.7, kStarts = 0.4;

  static bool shifts_first(const Context& context) {
    return context.problem().order == Order::free && context.options().on("orders");
  }

  // Anneals every start plan for a share of the limits, then runs rounds from the best plan.
  static void run(Context& context, Anneal& anneal, const std::vector<std::vector<Event>>& starts) {
    const double hot = context.options().number("hot"), cold = context.options().number("cold");
    const double reorder = context.options().number("reorder");
    if (shifts_first(context) && reorder > 0) {
      // Builds a new order and anneals it for most of the time. Annealing from the best plan would
      // not reach it, since all plans in between are worse.
      anneal.load(starts.front(), true);
      anneal.reorder(reorder);
      const double left = 1 - anneal.used();
      anneal.round(1 - 0.4 * left, hot, cold);
      if (!anneal.state().within()) anneal.repair(1 - 0.35 * left);
      for (const auto& sequence : starts) anneal.load(sequence, true);
    } else {
      const double each = (1 - anneal.used()) * kStarts / static_cast<double>(starts.size());
      for (const auto& sequence : starts) {
        if (context.done()) return;
        const double used = anneal.used();
        anneal.load(sequence, true);
        anneal.round(used + 0.6 * each, hot, cold);
        if (!anneal.state().within()) anneal.repair(used + each);
      }
    }
    const double rounds = context.options().number("rounds");
    double length = (1 - anneal.used()) * (kGrowth - 1) / (std::pow(kGrowth, rounds) - 1);
    for (std::size_t i = 0; !context.done() && anneal.used() < 1; ++i) {
      const double used = anneal.used();
      double until = used + length;
      if (until + 0.3 * length > 1) until = 1;
      if (anneal.has_best())
        anneal.load(std::vector<Event>(anneal.best()), true);
      else
        anneal.load(starts[i % starts.size()], true);
      // A repair ends in a local minimum; annealing from the start plan itself reaches other
      // states.
      if (!anneal.has_best() && i / starts.size() % 2 == 0)
        anneal.repair(std::min(1.0, used + 0.5 * length));
      anneal.round(until, hot, cold);
      if (!anneal.state().within()) anneal.repair(std::min(1.0, until + 0.1 * length));
      length *= kGrowth;
    }
  }

  // The start plans that keep the problem's order, and the given order if none keeps the budget.
  static std::vector<std::vector<Event>> usable_starts(const Problem& problem, Context& context) {
    const Graph& graph = problem.graph;
    std::vector<std::vector<Event>> starts;
    for (const Plan& plan : context.starts()) {
      // The offloads of a plan may stand elsewhere than those derived from its events. Without a
      // machine the plan cannot be a start.
      if (transfers(plan) && plan.machine == problem.machine) context.offer(plan);
      std::vector<Event> events = events_of(graph, plan);
      if (transfers(events) && !problem.machine) continue;
      events = without_unread(problem, events);
      if (problem.order == Order::free || follows_order(graph, computations(events)))
        starts.push_back(std::move(events));
    }
    for (const auto& events : starts) {
      context.offer_events(events);
      context.limits().spend(static_cast<std::int64_t>(events.size() / 8));
      if (context.done()) return starts;
    }
    if (context.has_plan() && !starts.empty()) return starts;
    starts.push_back(own_events(graph));
    context.offer_events(starts.back());
    context.limits().spend(static_cast<std::int64_t>(starts.back().size() / 8));
    return starts;
  }
};

}  // namespace

std::unique_ptr<Solver> make_search() { return std::make_unique<Search>(); }

}  // namespace lowtide::solve::local::search

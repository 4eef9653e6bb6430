// What a solver gets besides its problem (limits, seed, options, start plans), and the sink for
// its plans and lower bounds.
//
// A solver offers plans and claims as it finds them. The context simulates every offer, keeps the
// best, records the history and notifies the watcher. So a solver that is stopped at any time has
// already delivered its best plan.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/base/random.h"
#include "lowtide/device/part_price.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/interface/options.h"

namespace lowtide::solve {

class SolverTable;

// What a watcher sees, whenever it changes. The pointers live as long as the call.
struct Progress {
  double seconds = 0;
  std::int64_t work = 0;
  std::string_view solver;
  const Plan* plan = nullptr;          // the best within the budget, if there is one
  Cost cost;                           // of it
  std::optional<Bytes> smallest_peak;  // of all plans seen
  Bound bound;
};
using Watcher = std::function<void(const Progress&)>;

struct ContextSettings {
  LimitSettings limits;
  std::uint64_t seed = 0;
  int threads = 1;
  Options options;
  std::vector<Plan> starts;              // plans to begin from, best first; may be over budget
  Bound known;                           // proven of the problem before; zero if nothing is
  const SolverTable* solvers = nullptr;  // for solvers that are made of others
  Watcher watcher;
  // What slices of ops cost; null if plans may have no transforms. If they may, nothing about the
  // graph as it is bounds them but what is always live.
  const Prices* transform_prices = nullptr;
};

class Context {
 public:
  Context(const Problem& problem, std::string_view solver, ContextSettings settings);

  const Problem& problem() const { return problem_; }
  Limits& limits() { return limits_; }
  const Limits& limits() const { return limits_; }
  Random& random() { return random_; }
  std::uint64_t seed() const { return settings_.seed; }
  int threads() const { return settings_.threads; }
  const Options& options() const { return settings_.options; }
  std::span<const Plan> starts() const { return settings_.starts; }
  const SolverTable* solvers() const { return settings_.solvers; }

  // Whether a plan that is offered may have transforms: of the problem's graph, as in files.
  bool may_transform() const { return settings_.transform_prices != nullptr; }
  // What their prices come from. Only where they may have some.
  const Prices& transform_prices() const { return *settings_.transform_prices; }

  // Simulates the plan; keeps it if it meets the budget and the time limit and is better than the
  // best so far: by the objective (duration or peak), ties by the other. Says whether it was kept.
  // A plan that asks too much of the host is forgotten at once.
  // An illegal plan is a broken invariant of the solver: InternalError.
  bool offer(Plan plan, std::string_view found_by = {});
  // The same, for the ops in the order of their computation; frees as early as possible.
  // Returns false at once if the duration would overflow 63 bits.
  bool offer_sequence(std::span<const OpId> sequence);
  // The same for a sequence with transfers, on the problem's machine.
  bool offer_events(std::span<const Event> events);

  // Proven lower bounds, on the duration and on the peak memory of every plan for the problem.
  void raise_bound(Ticks duration);
  void raise_floor(Bytes peak);
  // The same as claimed by an external engine, whose proof nobody here can check. It holds until a
  // plan beats it: from then on no claim of an engine is believed, earlier or later.
  void raise_engine_bound(Ticks duration);
  bool engine_believed() const { return engine_believed_; }
  // What the best bound so far says of the links (Outcome::link_price).
  void tell_link_price(double price) { outcome_.link_price = price; }
  // Of the solver's own, narrower model.
  void set_model(ModelClaim claim) { outcome_.model = std::move(claim); }
  // For portfolios: the statistics of the part of that name, created by the first call. Plans
  // offered with this name as `found_by` are counted there from then on.
  PortfolioPart& part(std::string_view name);
  const std::vector<PortfolioPart>& parts() const { return outcome_.parts; }
  void set_note(std::string note) { outcome_.note = std::move(note); }

  // A plan within the budget is known, and it is proven that none is better.
  bool proven_optimal() const;
  // It is proven that no plan keeps within the budget, or within the time limit.
  bool proven_infeasible() const {
    return outcome_.bound.peak > problem_.budget ||
           (problem_.time_limit && outcome_.bound.duration > *problem_.time_limit);
  }
  bool done() { return proven_optimal() || proven_infeasible() || limits_.stopped(); }

  const Bound& bound() const { return outcome_.bound; }
  // Without what engines have said.
  Bound own_bound() const { return {own_duration_, outcome_.bound.peak}; }
  bool has_plan() const { return outcome_.plan.has_value(); }
  const Plan& best() const { return *outcome_.plan; }
  const Cost& best_cost() const { return outcome_.cost; }
  // The plan with the smallest peak seen, within the budget or not.
  const std::optional<Plan>& smallest() const { return smallest_; }
  // Of the plans over the budget that are shorter than the best, the one with the smallest peak: a
  // start for whoever can repair it.
  const std::optional<Plan>& repair_start() const { return repair_start_; }
  const std::optional<Bytes>& smallest_peak() const { return outcome_.smallest_peak; }

  // What has been found: call once, at the end.
  Outcome finish();

 private:
  bool better(const Cost& a, const Cost& b) const;
  PortfolioPart* find_part(std::string_view name);
  void notify();

  const Problem& problem_;
  std::string solver_;
  ContextSettings settings_;
  Limits limits_;
  Random random_;
  Outcome outcome_;
  Ticks own_duration_;  // the bound without what engines have said
  bool engine_believed_ = true;
  std::optional<Plan> smallest_, repair_start_;
  Cost repair_cost_;
};

}  // namespace lowtide::solve

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

// The progress that a watcher sees at each change. The pointers are valid during the call.
struct Progress {
  double seconds = 0;
  std::int64_t work = 0;
  std::string_view solver;
  const Plan* plan = nullptr;          // the best within the budget, if any
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
  std::vector<Plan> starts;              // best first; may be over the budget
  Bound known;                           // bounds proven before; zero if unknown
  const SolverTable* solvers = nullptr;  // for solvers that run others
  Watcher watcher;
  // The prices of parts of ops; null if plans may have no transforms. If they may, the original
  // graph bounds them only by the bytes that are always live.
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

  // Whether an offered plan may have transforms of the problem's graph, as in files.
  bool may_transform() const { return settings_.transform_prices != nullptr; }
  // The prices for them. Call it only if may_transform() is true.
  const Prices& transform_prices() const { return *settings_.transform_prices; }

  // Simulates the plan, and keeps it if it meets the budget and the time limit and is better than
  // the best so far: by the objective (duration or peak), ties by the other figure. Returns whether
  // it was kept. A plan over the host budget is dropped. An illegal plan is a broken invariant of
  // the solver: throws InternalError.
  bool offer(Plan plan, std::string_view found_by = {});
  // The same for a sequence of ops; tensors are freed as early as possible. Returns false if the
  // duration would exceed 63 bits.
  bool offer_sequence(std::span<const OpId> sequence);
  // The same for a sequence with transfers, on the problem's machine.
  bool offer_events(std::span<const Event> events);

  // Proven lower bounds, on the duration and on the peak of every plan for the problem.
  void raise_bound(Ticks duration);
  void raise_floor(Bytes peak);
  // The same for a claim of an external engine, whose proof cannot be checked here. It counts until
  // a plan refutes it; from then on no claim of an engine counts, earlier or later.
  void raise_engine_bound(Ticks duration);
  bool engine_believed() const { return engine_believed_; }
  // The price of the link at the best bound so far (Outcome::link_price).
  void tell_link_price(double price) { outcome_.link_price = price; }
  // The claim of the solver for its own, narrower model.
  void set_model(ModelClaim claim) { outcome_.model = std::move(claim); }
  // For portfolios: the statistics of the subsolver with that name, created by the first call.
  // Plans with this name as `found_by` are counted there from then on.
  PortfolioPart& part(std::string_view name);
  const std::vector<PortfolioPart>& parts() const { return outcome_.parts; }
  void set_note(std::string note) { outcome_.note = std::move(note); }

  // A plan within the budget is known, and proven optimal.
  bool proven_optimal() const;
  // It is proven that no plan keeps the budget, or the time limit.
  bool proven_infeasible() const {
    return outcome_.bound.peak > problem_.budget ||
           (problem_.time_limit && outcome_.bound.duration > *problem_.time_limit);
  }
  bool done() { return proven_optimal() || proven_infeasible() || limits_.stopped(); }

  const Bound& bound() const { return outcome_.bound; }
  // The bound without claims of engines.
  Bound own_bound() const { return {own_duration_, outcome_.bound.peak}; }
  bool has_plan() const { return outcome_.plan.has_value(); }
  const Plan& best() const { return *outcome_.plan; }
  const Cost& best_cost() const { return outcome_.cost; }
  // The plan with the smallest peak so far, within the budget or not.
  const std::optional<Plan>& smallest() const { return smallest_; }
  // Of the plans over the budget that are shorter than the best plan, the one with the smallest
  // peak: a start plan for solvers that repair plans.
  const std::optional<Plan>& repair_start() const { return repair_start_; }
  const std::optional<Bytes>& smallest_peak() const { return outcome_.smallest_peak; }

  // The outcome: call once, at the end.
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
  Ticks own_duration_;  // the bound without claims of engines
  bool engine_believed_ = true;
  std::optional<Plan> smallest_, repair_start_;
  Cost repair_cost_;
};

}  // namespace lowtide::solve

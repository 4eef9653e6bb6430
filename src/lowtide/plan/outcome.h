// The results of a solve.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/base/units.h"
#include "lowtide/plan/plan.h"

namespace lowtide {

// optimal: a plan, and it is proven that none is better. feasible: a plan. infeasible: it is proven
// that there is none. unknown: no plan was found.
enum class Status : std::uint8_t { optimal, feasible, infeasible, unknown };

struct Cost {
  Ticks duration;
  Bytes peak;
  Bytes host_peak;
  bool operator==(const Cost&) const = default;
};

// Lower bounds that are proven for every plan of the problem, with any number of recomputations.
struct Bound {
  Ticks duration;  // no plan is shorter
  Bytes peak;      // no plan has a smaller peak, whatever its duration
};

struct Incumbent {
  double seconds = 0;  // since the solve began
  std::int64_t work = 0;
  Cost cost;
};

// The statistics of a subsolver of a portfolio, over all of its calls.
struct PortfolioPart {
  std::string name;
  double seconds = 0;  // summed over threads
  std::int64_t work = 0;
  std::int64_t plans = 0;  // how often its plan became the incumbent
  Ticks won = {};          // by which these were shorter than the incumbent; a first plan wins none
  Ticks bound = {};        // sum by which it raised the bound on the duration
  std::string failure = {};  // its first exception, if it failed
};

// A claim about a model that is narrower than the problem, such as one with a limited number of
// computations of each op. It is never a claim about the problem.
struct ModelClaim {
  std::string name = {};    // the solver of the model, and what the model omits
  Ticks bound = {};         // none of the model's plans is shorter
  bool optimal = false;     // the best of them was found
  bool infeasible = false;  // the model has no plan within the budget
};

struct Outcome {
  Status status = Status::unknown;
  StopReason stopped_by = StopReason::finished;  // without a plan only if it is proven infeasible
  std::optional<Plan> plan;                      // present if status is optimal or feasible
  Cost cost;  // of `plan`; otherwise of the plan with the smallest peak seen
  std::optional<Bytes> smallest_peak;  // of all plans seen, within the budget or not
  Bound bound;
  // With a machine: the per cent by which the bound on the duration falls, approximately, if
  // transfers take one per cent less time. 0: the link is no bottleneck. nullopt if no solver has
  // computed it.
  std::optional<double> link_price = std::nullopt;
  std::vector<Incumbent> history;    // each better than the one before
  std::string found_by;              // the solver of the plan
  std::vector<PortfolioPart> parts;  // subsolvers of a portfolio, in the order of their first calls
  std::optional<ModelClaim> model;   // if its solver has one
  std::string note;                  // a sentence: why there is no plan, or what was tried
};

std::string_view to_string(Status status);
// Adds the statistics of subsolvers with the same names.
void add_parts(std::vector<PortfolioPart>& parts, const std::vector<PortfolioPart>& more);
// A sentence about the subsolvers that failed; empty if none did.
std::string failures_text(const std::vector<PortfolioPart>& parts);
// Adds a sentence to the note, unless the note has it already.
void add_note(Outcome& outcome, const std::string& sentence);
// The status of the model: optimal, infeasible, or feasible otherwise.
Status status_of(const ModelClaim& model);

// 100 x (duration / base - 1); 0 if base is 0.
double overhead_percent(Ticks duration, Ticks base);
// 100 x (duration - bound) / bound; 0 if both are equal, infinite if only the bound is 0.
double gap_percent(Ticks duration, Ticks bound);
// Whether a bound on the duration is proven; `base`: the base duration. False if there are no
// plans, and if any transforms may be used.
bool is_bounded(const Outcome& outcome, Ticks base);

}  // namespace lowtide
